// Blocks that wait for their next loan, by size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "pinned/slot.hpp"

namespace ferry {

// Not for two threads at once.
// Invariant: every size of which there are blocks, idle or not, has a shelf, and each shelf is in order of return.
class IdleBlocks {
 public:
  // Before the first block of a size is made, so that give() allocates nothing; and after each that is gone.
  void expect(std::size_t capacity) { ++shelves_[capacity].blocks; }
  void forget(std::size_t capacity) noexcept;

  void give(std::unique_ptr<PinnedSlot> slot) noexcept;
  // The one that fits best and wastes at most an eighth of what is wanted; of equals the one returned last. Null where
  // there is none.
  [[nodiscard]] std::unique_ptr<PinnedSlot> best_fit(std::size_t wanted) noexcept;
  [[nodiscard]] std::unique_ptr<PinnedSlot> longest_unused() noexcept;
  // When that was returned; the largest number where there is none.
  [[nodiscard]] std::uint64_t oldest_return() const noexcept;
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 private:
  struct Shelf {
    SlotList idle;
    std::size_t blocks = 0;
  };
  using Shelves = std::map<std::size_t, Shelf>;

  std::unique_ptr<PinnedSlot> take(Shelf& shelf, SlotList::iterator at) noexcept;

  Shelves shelves_;
  std::size_t nbytes_ = 0;
};

}  // namespace ferry
