#include "transfer/host_ring.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/mutation.hpp"
#include "transfer/abandoned.hpp"
#include "transfer/event_wait.hpp"
#include "transfer/interruption.hpp"
#include "transfer/refusals.hpp"

namespace ferry {
namespace {

constexpr std::size_t piece_alignment = 256;
constexpr std::size_t smallest_slot_nbytes = std::size_t{64} << 10;
constexpr std::size_t most_events = 256;  // of one slot: a small piece each

constexpr std::size_t aligned(std::size_t nbytes) noexcept {
  return (nbytes + piece_alignment - 1) / piece_alignment * piece_alignment;
}

bool is_known_done(const cuda::Functions& functions, const cuda::Event& event) noexcept {
  try {
    return is_done(functions, event);
  } catch (...) {
    return false;  // who waits for it is told
  }
}

}  // namespace

RingPiece::RingPiece(RingPiece&& other) noexcept
    : ring_(std::move(other.ring_)),
      slot_(other.slot_),
      block_(std::move(other.block_)),
      data_(other.data_),
      touched_(other.touched_) {}

RingPiece::~RingPiece() {
  if (!ring_) return;
  block_.reset();
  ring_->give_back(slot_, touched_);
}

void RingPiece::used_until(std::shared_ptr<const cuda::Event> done) {
  const std::lock_guard lock(ring_->mutex_);
  ring_->slots_[slot_].events.push_back(std::move(done));
  touched_ = false;
}

HostRing::HostRing(const cuda::Driver& driver, std::size_t nbytes) noexcept
    : driver_(driver),
      slot_nbytes_(std::max(nbytes / slot_count / piece_alignment * piece_alignment, piece_alignment)) {}

HostRing::~HostRing() {
  const cuda::Functions* functions = driver_.functions_if_usable();
  for (Slot& slot : slots_) {
    const auto known_done = [functions](const auto& event) {
      return functions != nullptr && is_known_done(*functions, *event);
    };
    if (!std::all_of(slot.events.begin(), slot.events.end(), known_done)) abandon({std::move(slot.block)});
  }
}

std::size_t HostRing::slot_nbytes(const cuda::ContextScope& scope) {
  {
    const std::lock_guard lock(mutex_);
    if (sized_) return slot_nbytes_;
  }
  static_cast<void>(take(scope, 1));  // tells how large slots can be
  const std::lock_guard lock(mutex_);
  return slot_nbytes_;
}

RingPiece HostRing::take(const cuda::ContextScope& scope, std::size_t nbytes) {
  return std::move(*take(scope, nbytes, true));
}

std::optional<RingPiece> HostRing::try_take(const cuda::ContextScope& scope, std::size_t nbytes) {
  return take(scope, nbytes, false);
}

std::optional<RingPiece> HostRing::take(const cuda::ContextScope& scope, std::size_t nbytes, bool may_wait) {
  std::unique_lock lock(mutex_);
  if (aligned(nbytes) > slot_nbytes_) throw no_pinned_memory(nbytes);
  for (;;) {
    const auto [next, at] = choose(nbytes);
    switch (next) {
      case Next::append:
        return piece(at, nbytes);
      case Next::begin:
        slots_[at].filled = 0;
        slots_[at].events.clear();
        return piece(at, nbytes);
      case Next::make:
        if (make(scope, at, lock)) return piece(at, nbytes);
        break;
      case Next::wait_for_events:
        if (!may_wait) return std::nullopt;
        wait_for_events(at, lock);
        break;
      case Next::wait_for_holders:
        if (!may_wait) return std::nullopt;
        wait_for_holders(nbytes, lock);
        break;
    }
  }
}

// With the lock held.
HostRing::Choice HostRing::choose(std::size_t nbytes) {
  const Slot& open = slots_[current_];
  if (open.block && !open.abandoned && slot_nbytes_ - open.filled >= aligned(nbytes) &&
      open.events.size() < most_events) {
    return {Next::append, current_};
  }
  std::optional<std::size_t> oldest;
  for (std::size_t i = 0; i < slot_count; ++i) {
    Slot& slot = slots_[i];
    if (!slot.block || slot.abandoned || slot.holders > 0) continue;
    if (is_idle(slot)) return {Next::begin, i};
    if (!oldest || slot.ticket < slots_[*oldest].ticket) oldest = i;
  }
  const bool being_made = std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.holders > 0; });
  if (!has_memory() && being_made) return {Next::wait_for_holders, 0};  // the first one tells how large they can be
  for (std::size_t i = 0; i < slot_count; ++i) {
    const Slot& slot = slots_[i];
    if (!slot.block && slot.holders == 0 && !slot.refused) return {Next::make, i};
  }
  if (oldest) return {Next::wait_for_events, *oldest};
  return {Next::wait_for_holders, 0};
}

// With the lock held.
bool HostRing::is_idle(Slot& slot) const {
  if (mutated(Mutation::reuse_ring_slot_early)) return true;
  const cuda::Functions& functions = driver_.functions();
  while (!slot.events.empty() && is_known_done(functions, *slot.events.back())) slot.events.pop_back();
  return slot.events.empty();
}

// With the lock held.
RingPiece HostRing::piece(std::size_t at, std::size_t nbytes) {
  Slot& slot = slots_[at];
  if (slot.filled == 0) slot.ticket = ++last_ticket_;
  std::byte* const data = slot.block->data() + slot.filled;
  RingPiece made(shared_from_this(), at, slot.block, data);
  slot.filled += aligned(nbytes);
  ++slot.holders;
  current_ = at;
  return made;
}

// False where the system locks no more, but there are slots already. Drops the lock meanwhile.
bool HostRing::make(const cuda::ContextScope& scope, std::size_t at, std::unique_lock<std::mutex>& lock) {
  Slot& slot = slots_[at];
  const bool only = !has_memory();
  const bool may_shrink = only && !sized_;
  std::size_t nbytes = slot_nbytes_;
  std::shared_ptr<PinnedBlock> block;
  std::exception_ptr failure;
  ++slot.holders;
  lock.unlock();
  try {
    for (;; nbytes = nbytes / 2 / piece_alignment * piece_alignment) {
      if (auto pinned = PinnedBlock::make(scope, nbytes)) block = std::make_shared<PinnedBlock>(std::move(*pinned));
      if (block || !may_shrink || nbytes / 2 < smallest_slot_nbytes) break;
    }
    if (!block && only) throw no_pinned_memory(nbytes);
    // A child would only make the parent's pages copy-on-write.
    if (block) static_cast<void>(::madvise(block->data(), block->nbytes(), MADV_DONTFORK));
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  --slot.holders;
  changed_.notify_all();
  if (failure) std::rethrow_exception(failure);
  if (!block) {
    slot.refused = true;
    return false;
  }
  if (may_shrink) slot_nbytes_ = nbytes;
  sized_ = true;
  slot.block = std::move(block);
  slot.filled = 0;
  return true;
}

// Drops the lock meanwhile.
void HostRing::wait_for_holders(std::size_t nbytes, std::unique_lock<std::mutex>& lock) {
  const auto can_go_on = [&] { return choose(nbytes).next != Next::wait_for_holders; };
  while (!changed_.wait_for(lock, InterruptibleWaits::between_questions, can_go_on)) {
    lock.unlock();
    end_if_interrupted();
    lock.lock();
  }
}

// Waits for what devices do in a slot that nobody holds. Drops the lock meanwhile.
void HostRing::wait_for_events(std::size_t at, std::unique_lock<std::mutex>& lock) {
  Slot& slot = slots_[at];
  const auto events = slot.events;  // they stay with the slot, too: it is not idle before they are done
  slot.filled = slot_nbytes_;       // so that nobody appends
  ++slot.holders;
  lock.unlock();
  std::exception_ptr failure;
  bool has_failed = false;
  try {
    for (const auto& event : events) wait_for(driver_.functions(), *event);
  } catch (const Interrupted&) {
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
    has_failed = true;
  }
  lock.lock();
  give_back(slot, has_failed);
  if (failure) std::rethrow_exception(failure);
}

// With the lock held.
bool HostRing::has_memory() const noexcept {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.block != nullptr; });
}

void HostRing::give_back(std::size_t at, bool touched) noexcept {
  const std::lock_guard lock(mutex_);
  give_back(slots_[at], touched);
}

// With the lock held. A slot whose last work nobody can wait for is never used again: another takes its place.
void HostRing::give_back(Slot& slot, bool touched) noexcept {
  slot.abandoned = slot.abandoned || touched;
  if (--slot.holders == 0 && slot.abandoned) {
    abandon({std::move(slot.block)});
    slot = Slot{};
  }
  if (slot.holders == 0 && slot.events.empty()) slot.filled = 0;
  changed_.notify_all();
}

}  // namespace ferry
