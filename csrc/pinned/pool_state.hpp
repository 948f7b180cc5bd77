// What a pool of pinned memory knows, and the steps that its functions are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/fork_generation.hpp"
#include "pinned/idle_blocks.hpp"
#include "pinned/pinned_pool.hpp"
#include "pinned/slabs.hpp"
#include "pinned/slot.hpp"

namespace ferry {

// What a request costs.
struct Wanted {
  std::size_t nbytes;  // capacity
  bool is_slot;        // of a slab
};

// Blocks that came back before its events were recorded.
struct Epoch {
  SlotList slots;
  std::vector<cuda::Event> events;  // those not done yet
  int unknown_answers = 0;
  bool has_passed = false;  // then only those slots are left that wait for their holds
};

// Invariant, outside of the mutex: stats.idle_nbytes, stats.in_use_nbytes and stats.retired_nbytes together are all
// locked pages but those that `moving_nbytes` counts and what was abandoned; with the former never more than the limit
// was when the last of them were locked.
struct PinnedPool::State {
  struct Loan {
    std::weak_ptr<PinnedLease> lease;
    std::size_t nbytes = 0;
  };
  using Loans = std::map<const std::byte*, Loan>;
  using Slot = std::unique_ptr<PinnedSlot>;

  State(cuda::Runtime& used, Fence kind, std::size_t limit_nbytes) : runtime(used), fence(kind) {
    stats.limit_nbytes = limit_nbytes;
  }

  // Another thread of the parent may have held the mutex, and the blocks are the parent's.
  [[nodiscard]] bool is_in_child() const noexcept { return cuda::fork_generation() != generation; }
  [[nodiscard]] std::size_t total_nbytes() const noexcept {
    return stats.in_use_nbytes + stats.idle_nbytes + stats.retired_nbytes + moving_nbytes;
  }
  void note_high_water() noexcept;

  // Idle memory whose pages are still locked, counted as moving; null where none fits.
  [[nodiscard]] Slot take_idle(const Wanted& wanted);
  // New memory, counted as moving; null beyond the limit and where nothing can be locked. Throws Error.
  [[nodiscard]] Slot grown(const cuda::ContextScope& scope, const Wanted& wanted);
  [[nodiscard]] bool reserve(std::size_t nbytes) noexcept;
  [[nodiscard]] Slot locked(const cuda::ContextScope& scope, const Wanted& wanted);
  void drop(Slot slot) noexcept;
  // Gives back what was unused for longest; returns its size, 0 where nothing is left. With a budget for everything,
  // only while more than that is taken.
  std::size_t trim_one(std::size_t keep_idle_nbytes, std::size_t keep_total_nbytes) noexcept;
  std::size_t bury() noexcept;

  // With the mutex held.
  void shelve(Slot slot) noexcept;
  void abandon(SlotList& slots) noexcept;
  void note_lost(const cuda::ContextIdentity& context) noexcept;

  void know_context(const cuda::ContextIdentity& context);
  [[nodiscard]] bool wants_epoch() const noexcept;
  void close_epoch() noexcept;
  void poll_epochs() noexcept;
  void settle(std::list<Epoch>& asked, SlotList& surplus) noexcept;

  cuda::Runtime& runtime;
  const Fence fence;
  const std::uint32_t generation = cuda::fork_generation();

  mutable std::mutex mutex;
  PinnedStats stats;
  std::size_t moving_nbytes = 0;  // being locked or let go right now, without the mutex
  IdleBlocks blocks;
  Slabs slabs;
  Loans loans;
  std::uint64_t loans_made = 0;
  std::uint64_t returns = 0;

  SlotList open;  // exposed, and came back since the last epoch was closed
  std::size_t open_nbytes = 0;
  std::uint64_t last_return = 0;  // the tick of the last one that came back (cuda::ForeignStreams)
  std::list<Epoch> closed;
  std::size_t waiting = 0;  // closed epochs whose events are not all done
  bool closing = false;     // one thread at a time
  bool polling = false;
  std::vector<cuda::ContextIdentity> seen;  // contexts that memory was leased in
  std::vector<cuda::ContextIdentity> lost;
  std::uint64_t lost_before = 0;  // what was lent before this loan may be touched by a device that is lost
};

}  // namespace ferry
