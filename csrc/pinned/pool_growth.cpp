// A pool's memory: from the system, to a loan, and back to the system.
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "pinned/pool_state.hpp"

namespace ferry {

void PinnedPool::State::note_high_water() noexcept {
  stats.high_water_nbytes = std::max(stats.high_water_nbytes, total_nbytes());
}

// With the mutex held.
void PinnedPool::State::shelve(Slot slot) noexcept {
  slot->returned = ++returns;
  const std::size_t nbytes = slot->capacity;
  if (slot->slab == nullptr) {
    blocks.give(std::move(slot));
  } else if (!slabs.give(std::move(slot))) {
    return;
  }
  stats.idle_nbytes += nbytes;
}

// Gives memory that counts as moving back to the system.
void PinnedPool::State::drop(Slot slot) noexcept {
  const std::size_t nbytes = slot->capacity;
  slot.reset();
  const std::lock_guard lock(mutex);
  blocks.forget(nbytes);
  moving_nbytes -= nbytes;
  ++stats.trims;
}

PinnedPool::State::Slot PinnedPool::State::take_idle(const Wanted& wanted) {
  for (;;) {
    Slot slot;
    {
      const std::lock_guard lock(mutex);
      slot = wanted.is_slot ? slabs.take(wanted.nbytes) : blocks.best_fit(wanted.nbytes);
      if (slot == nullptr) return nullptr;
      stats.idle_nbytes -= slot->capacity;
      moving_nbytes += slot->capacity;
    }
    const PinnedBlock& block = slot->slab == nullptr ? *slot->block : slot->slab->block();
    if (block.is_registered()) return slot;
    if (slot->slab == nullptr) {
      drop(std::move(slot));
      continue;
    }
    {
      const std::lock_guard lock(mutex);
      moving_nbytes -= slot->capacity;
      Slab& slab = *slot->slab;
      if (slabs.kill(slab)) stats.idle_nbytes -= slab.idle_nbytes();
      slabs.give(std::move(slot));
    }
    bury();
  }
}

std::size_t PinnedPool::State::bury() noexcept {
  SlabList gone;
  {
    const std::lock_guard lock(mutex);
    gone = slabs.buried();
    stats.trims += gone.size();
  }
  return gone.size();
}

std::size_t PinnedPool::State::trim_one(std::size_t keep_idle_nbytes, std::size_t keep_total_nbytes) noexcept {
  Slot slot;
  SlabList slab;
  std::size_t nbytes = 0;
  {
    const std::lock_guard lock(mutex);
    if (stats.idle_nbytes <= keep_idle_nbytes || total_nbytes() <= keep_total_nbytes) return 0;
    if (blocks.nbytes() == 0 && slabs.whole_nbytes() == 0) return 0;
    if (blocks.nbytes() > 0 && blocks.oldest_return() <= slabs.oldest_return()) {
      slot = blocks.longest_unused();
      nbytes = slot->capacity;
    } else {
      slab = slabs.longest_unused();
      nbytes = slab_nbytes;
    }
    stats.idle_nbytes -= nbytes;
    moving_nbytes += nbytes;
  }
  if (slot != nullptr) {
    drop(std::move(slot));
    return nbytes;
  }
  slab.clear();
  const std::lock_guard lock(mutex);
  moving_nbytes -= nbytes;
  ++stats.trims;
  return nbytes;
}

bool PinnedPool::State::reserve(std::size_t nbytes) noexcept {
  for (;;) {
    std::size_t keep = 0;
    {
      const std::lock_guard lock(mutex);
      const std::size_t limit = stats.limit_nbytes;
      if (nbytes > limit) return false;
      keep = limit - nbytes;
      if (total_nbytes() <= keep) {
        moving_nbytes += nbytes;
        return true;
      }
      // To make room that is not enough would empty the pool in vain.
      if (total_nbytes() - blocks.nbytes() - slabs.whole_nbytes() > keep) return false;
    }
    if (trim_one(0, keep) == 0) {
      const std::lock_guard lock(mutex);
      if (total_nbytes() > keep) return false;
    }
  }
}

// Null where no pages can be locked. What was reserved counts as moving afterwards, too, but for the rest of a slab.
PinnedPool::State::Slot PinnedPool::State::locked(const cuda::ContextScope& scope, const Wanted& wanted) {
  auto slot = std::make_unique<PinnedSlot>();
  std::optional<PinnedBlock> block = PinnedBlock::make(scope, wanted.is_slot ? slab_nbytes : wanted.nbytes);
  if (!block) return nullptr;
  if (!wanted.is_slot) {
    slot->data = block->data();
    slot->capacity = block->nbytes();
    slot->block.emplace(std::move(*block));
    const std::lock_guard lock(mutex);
    blocks.expect(slot->capacity);
    note_high_water();
    return slot;
  }
  SlabList slab;
  slab.emplace_back(std::move(*block), wanted.nbytes);
  const std::lock_guard lock(mutex);
  slabs.add(std::move(slab));
  slot = slabs.take(wanted.nbytes, std::move(slot));
  stats.idle_nbytes += slab_nbytes - wanted.nbytes;
  moving_nbytes -= slab_nbytes - wanted.nbytes;
  note_high_water();
  return slot;
}

PinnedPool::State::Slot PinnedPool::State::grown(const cuda::ContextScope& scope, const Wanted& wanted) {
  const std::size_t nbytes = wanted.is_slot ? slab_nbytes : wanted.nbytes;
  for (;;) {
    if (!reserve(nbytes)) {
      poll_epochs();
      if (!reserve(nbytes)) return nullptr;
    }
    std::exception_ptr failed;
    try {
      if (Slot slot = locked(scope, wanted)) return slot;
    } catch (const std::bad_alloc&) {  // the same as pages that cannot be locked
    } catch (...) {
      failed = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex);
      moving_nbytes -= nbytes;
    }
    if (failed) std::rethrow_exception(failed);
    std::size_t freed = 0;
    while (const std::size_t more = trim_one(0, 0)) freed += more;
    if (freed == 0) return nullptr;
  }
}

}  // namespace ferry
