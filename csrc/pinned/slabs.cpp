#include "pinned/slabs.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

namespace ferry {

std::size_t Slabs::slot_nbytes_for(std::size_t nbytes) noexcept {
  return std::bit_ceil(std::max(nbytes, smallest_slot_nbytes));
}

Slabs::Class& Slabs::class_of(std::size_t slot_nbytes) noexcept {
  return classes_[static_cast<std::size_t>(std::countr_zero(slot_nbytes) - std::countr_zero(smallest_slot_nbytes))];
}

void Slabs::add(SlabList slab) noexcept {
  slab.front().self_ = slab.begin();
  SlabList& list = class_of(slab.front().slot_nbytes_).with_room;
  list.splice(list.begin(), slab);
  ++whole_;
}

std::unique_ptr<PinnedSlot> Slabs::take(std::size_t slot_nbytes, std::unique_ptr<PinnedSlot> spare) {
  Class& own = class_of(slot_nbytes);
  if (own.with_room.empty()) return nullptr;
  Slab& slab = own.with_room.front();
  std::unique_ptr<PinnedSlot> slot;
  if (!slab.idle_.empty()) {
    slot = taken(slab.idle_, std::prev(slab.idle_.end()));
  } else {
    slot = spare != nullptr ? std::move(spare) : std::make_unique<PinnedSlot>();
    slot->data = slab.block_.data() + slab.cut_++ * slot_nbytes;
    slot->capacity = slot_nbytes;
    slot->slab = &slab;
  }
  if (slab.out_++ == 0) --whole_;
  if (slab.idle_nbytes() < slot_nbytes) own.full.splice(own.full.begin(), own.with_room, slab.self_);
  return slot;
}

bool Slabs::give(std::unique_ptr<PinnedSlot> slot) noexcept {
  Slab& slab = *slot->slab;
  slab.returned_ = slot->returned;
  const bool was_full = slab.idle_nbytes() < slab.slot_nbytes_;
  --slab.out_;
  if (slab.is_dead_) return false;
  Class& own = class_of(slab.slot_nbytes_);
  if (was_full) own.with_room.splice(own.with_room.end(), own.full, slab.self_);
  if (slab.out_ == 0) ++whole_;
  append(slab.idle_, std::move(slot));
  return true;
}

bool Slabs::kill(Slab& slab) noexcept {
  if (std::exchange(slab.is_dead_, true)) return false;
  Class& own = class_of(slab.slot_nbytes_);
  SlabList& list = slab.idle_nbytes() < slab.slot_nbytes_ ? own.full : own.with_room;
  if (slab.out_ == 0) --whole_;
  dead_.splice(dead_.end(), list, slab.self_);
  return true;
}

SlabList Slabs::buried() noexcept {
  SlabList gone;
  for (auto at = dead_.begin(); at != dead_.end();) {
    const auto here = at++;
    if (here->out_ == 0) gone.splice(gone.end(), dead_, here);
  }
  return gone;
}

SlabList Slabs::longest_unused() noexcept {
  SlabList one;
  Slab* oldest = nullptr;
  for (Class& own : classes_) {
    for (Slab& slab : own.with_room) {
      if (slab.out_ == 0 && (oldest == nullptr || slab.returned_ < oldest->returned_)) oldest = &slab;
    }
  }
  if (oldest == nullptr) return one;
  --whole_;
  one.splice(one.begin(), class_of(oldest->slot_nbytes_).with_room, oldest->self_);
  return one;
}

std::uint64_t Slabs::oldest_return() const noexcept {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const Class& own : classes_) {
    for (const Slab& slab : own.with_room) {
      if (slab.out_ == 0) oldest = std::min(oldest, slab.returned_);
    }
  }
  return oldest;
}

SlabList Slabs::all() noexcept {
  SlabList every;
  for (Class& own : classes_) {
    every.splice(every.end(), own.with_room);
    every.splice(every.end(), own.full);
  }
  every.splice(every.end(), dead_);
  whole_ = 0;
  return every;
}

}  // namespace ferry
