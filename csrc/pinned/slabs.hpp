// Blocks that are cut into small equal slots: a registration each for small results would cost too much.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "pinned/slot.hpp"

namespace ferry {

constexpr std::size_t slab_nbytes = std::size_t{1} << 20;
constexpr std::size_t smallest_slot_nbytes = 256;
constexpr std::size_t slots_below_nbytes = std::size_t{32} << 10;  // from here on blocks of their own

class Slab;
using SlabList = std::list<Slab>;

class Slab {
 public:
  Slab(PinnedBlock block, std::size_t slot_nbytes) noexcept : block_(std::move(block)), slot_nbytes_(slot_nbytes) {}

  [[nodiscard]] const PinnedBlock& block() const noexcept { return block_; }
  [[nodiscard]] std::size_t slot_nbytes() const noexcept { return slot_nbytes_; }
  [[nodiscard]] std::size_t idle_nbytes() const noexcept { return block_.nbytes() - out_ * slot_nbytes_; }
  [[nodiscard]] bool is_whole() const noexcept { return out_ == 0; }

 private:
  friend class Slabs;
  PinnedBlock block_;
  std::size_t slot_nbytes_;
  std::size_t cut_ = 0;  // slots made so far
  std::size_t out_ = 0;  // slots that are not idle
  bool is_dead_ = false;
  std::uint64_t returned_ = 0;  // number of the last return
  SlotList idle_;
  SlabList::iterator self_;
};

// Not for two threads at once.
// Invariant: a slab is in the list of its size among those with room or the full ones, or, dead, in dead_.
class Slabs {
 public:
  // The size of slot for so many bytes, fewer than slots_below_nbytes.
  [[nodiscard]] static std::size_t slot_nbytes_for(std::size_t nbytes) noexcept;

  void add(SlabList slab) noexcept;  // of one
  // Null where there is none. One that is cut for the first time becomes `spare`; without a spare one, throws
  // std::bad_alloc.
  [[nodiscard]] std::unique_ptr<PinnedSlot> take(std::size_t slot_nbytes, std::unique_ptr<PinnedSlot> spare = nullptr);
  // True when the slot is idle now; one of a dead slab is gone.
  bool give(std::unique_ptr<PinnedSlot> slot) noexcept;
  // Lends no slot of it any more. True the first time.
  bool kill(Slab& slab) noexcept;
  // Dead ones that are whole again.
  [[nodiscard]] SlabList buried() noexcept;

  // Of those that are idle as a whole.
  [[nodiscard]] SlabList longest_unused() noexcept;
  [[nodiscard]] std::uint64_t oldest_return() const noexcept;
  [[nodiscard]] std::size_t whole_nbytes() const noexcept { return whole_ * slab_nbytes; }
  // For the end of the pool.
  [[nodiscard]] SlabList all() noexcept;

 private:
  static constexpr std::size_t classes = 8;  // 256 bytes to 32 KiB
  struct Class {
    SlabList with_room;
    SlabList full;
  };
  [[nodiscard]] Class& class_of(std::size_t slot_nbytes) noexcept;

  std::array<Class, classes> classes_;
  SlabList dead_;
  std::size_t whole_ = 0;  // slabs that are idle as a whole
};

}  // namespace ferry
