// Epochs of a pool: from the return of an exposed block to its next loan.
#include <algorithm>
#include <exception>
#include <utility>

#include "core/mutation.hpp"
#include "pinned/event_fate.hpp"
#include "pinned/fence.hpp"
#include "pinned/kept_for_good.hpp"
#include "pinned/pool_state.hpp"

namespace ferry {
namespace {

constexpr std::size_t close_from_nbytes = std::size_t{64} << 20;
// Each has an event for every stream. While so many wait, what comes back gathers in the open one.
constexpr std::size_t most_waiting = 4;

// Asks for events until one is not done yet. `lost` is the context of one that a failure of the device has ended.
EventFate asked(Epoch& epoch, cuda::ContextIdentity& lost) noexcept {
  while (!epoch.events.empty()) {
    EventFate fate = fate_of(epoch.events.back());
    if (fate == EventFate::lost) lost = epoch.events.back().context();
    epoch.unknown_answers = fate == EventFate::unknown ? epoch.unknown_answers + 1 : 0;
    if (epoch.unknown_answers >= most_unknown_answers) fate = EventFate::lost;
    if (fate != EventFate::done) return fate;
    epoch.events.pop_back();
  }
  return EventFate::done;
}

EventFate asked(std::vector<cuda::Event>& holds) noexcept {
  while (!holds.empty()) {
    const EventFate fate = fate_of(holds.back());
    if (fate != EventFate::done) return fate;
    holds.pop_back();
  }
  return EventFate::done;
}

std::size_t nbytes_of(const SlotList& slots) noexcept {
  std::size_t nbytes = 0;
  for (const auto& slot : slots) nbytes += slot->capacity;
  return nbytes;
}

// Events go back to their pool without the mutex: the driver may have to be called.
void forget_holds(SlotList& slots) noexcept {
  for (const auto& slot : slots) slot->holds.clear();
}

}  // namespace

void PinnedPool::State::know_context(const cuda::ContextIdentity& context) {
  const std::lock_guard lock(mutex);
  if (std::find(seen.begin(), seen.end(), context) != seen.end()) return;
  std::erase_if(seen, [&](const auto& known) { return known.handle == context.handle; });  // ended by a reset
  seen.push_back(context);
}

bool PinnedPool::State::wants_epoch() const noexcept {
  const std::lock_guard lock(mutex);
  return open_nbytes > close_from_nbytes;
}

void PinnedPool::State::note_lost(const cuda::ContextIdentity& context) noexcept {
  lost_before = loans_made + 1;
  if (std::find(lost.begin(), lost.end(), context) != lost.end()) return;
  try {
    lost.push_back(context);
  } catch (const std::bad_alloc&) {  // found out again at the next fence
  }
}

// With the mutex held.
void PinnedPool::State::abandon(SlotList& slots) noexcept {
  const std::size_t nbytes = nbytes_of(slots);
  stats.retired_nbytes -= nbytes;
  stats.abandoned_nbytes += nbytes;
  keep_for_good(slots);
}

void PinnedPool::State::close_epoch() noexcept {
  std::list<Epoch> fresh;
  std::vector<cuda::ContextIdentity> seen_now;
  std::vector<cuda::ContextIdentity> lost_now;
  std::uint64_t last_return_now = 0;
  try {
    fresh.emplace_back();
    const std::lock_guard lock(mutex);
    if (closing || open.empty() || waiting >= most_waiting) return;
    seen_now = seen;
    lost_now = lost;
    last_return_now = last_return;
    closing = true;
    fresh.front().slots.swap(open);
    open_nbytes = 0;
  } catch (const std::bad_alloc&) {
    return;
  }
  FenceAttempt attempt = record_fence(runtime, fence, last_return_now, seen_now, lost_now);
  Epoch& epoch = fresh.front();
  SlotList touched;
  {
    const std::lock_guard lock(mutex);
    closing = false;
    if (!attempt.recorded) {
      open_nbytes += nbytes_of(epoch.slots);
      open.splice(open.begin(), epoch.slots);
      return;
    }
    for (const cuda::ContextIdentity& context : attempt.lost) note_lost(context);
    for (auto at = epoch.slots.begin(); at != epoch.slots.end();) {
      const auto here = at++;
      if ((*here)->loan < lost_before) touched.splice(touched.end(), epoch.slots, here);
    }
    if (!epoch.slots.empty()) {
      epoch.events = std::move(attempt.events);
      closed.splice(closed.end(), fresh);
      ++waiting;
    }
  }
  if (touched.empty()) return;
  forget_holds(touched);
  const std::lock_guard lock(mutex);
  abandon(touched);
}

// Puts what was asked where it belongs now. With the mutex held.
void PinnedPool::State::settle(std::list<Epoch>& asked_epochs, SlotList& surplus) noexcept {
  for (Epoch& epoch : asked_epochs) {
    for (auto at = epoch.slots.begin(); epoch.has_passed && at != epoch.slots.end();) {
      const auto here = at++;
      if (!(*here)->holds.empty()) continue;
      if (fence == Fence::never) {
        stats.retired_nbytes -= (*here)->capacity;
        moving_nbytes += (*here)->capacity;
        surplus.splice(surplus.end(), epoch.slots, here);
      } else {
        stats.retired_nbytes -= (*here)->capacity;
        shelve(taken(epoch.slots, here));
      }
    }
  }
  std::erase_if(asked_epochs, [](const Epoch& epoch) { return epoch.slots.empty(); });
  closed.splice(closed.begin(), asked_epochs);
}

void PinnedPool::State::poll_epochs() noexcept {
  std::list<Epoch> taken_out;
  {
    const std::lock_guard lock(mutex);
    if (polling || closed.empty()) return;
    polling = true;
    taken_out.swap(closed);
  }
  SlotList gone;
  SlotList again;
  std::uint64_t passed = 0;
  std::size_t ended = 0;
  cuda::ContextIdentity lost_context;
  for (Epoch& epoch : taken_out) {
    switch (epoch.has_passed ? EventFate::done : asked(epoch, lost_context)) {
      case EventFate::done:
        passed += epoch.has_passed ? 0 : 1;
        epoch.has_passed = true;
        break;
      case EventFate::captured:
        again.splice(again.end(), epoch.slots);
        ++ended;
        break;
      case EventFate::lost:
        gone.splice(gone.end(), epoch.slots);
        ++ended;
        break;
      case EventFate::pending:
      case EventFate::unknown:
        break;
    }
    for (auto at = epoch.slots.begin(); epoch.has_passed && at != epoch.slots.end();) {
      const auto here = at++;
      if (asked((*here)->holds) == EventFate::lost) gone.splice(gone.end(), epoch.slots, here);
    }
    if (epoch.slots.empty()) epoch.events.clear();
  }
  forget_holds(gone);
  // A reset has ended the work, too: then nothing that is on loan can be touched any more.
  const cuda::Functions* functions = runtime.driver().functions_if_usable();
  const bool is_lost = functions != nullptr && cuda::is_alive(*functions, lost_context);
  SlotList surplus;
  {
    const std::lock_guard lock(mutex);
    polling = false;
    stats.epochs += passed;
    waiting -= passed + ended;
    if (is_lost) note_lost(lost_context);
    abandon(gone);
    open_nbytes += nbytes_of(again);
    open.splice(open.begin(), again);
    settle(taken_out, surplus);
  }
  while (!surplus.empty()) drop(taken(surplus, surplus.begin()));
}

}  // namespace ferry
