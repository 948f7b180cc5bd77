#include "pinned/retire_queue.hpp"

#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/mutation.hpp"
#include "pinned/event_fate.hpp"
#include "pinned/kept_for_good.hpp"

namespace ferry {
namespace {

// Work that shares an event is asked for once.
class Answers {
 public:
  EventFate of(const cuda::Event* event) noexcept {
    if (event == nullptr) return EventFate::done;
    if (event == last_) return fate_;
    last_ = event;
    try {
      const auto [known, fresh] = known_.try_emplace(event, EventFate::unknown);
      if (fresh) known->second = fate_of(*event);
      fate_ = known->second;
    } catch (const std::bad_alloc&) {
      fate_ = fate_of(*event);
    }
    return fate_;
  }

 private:
  const cuda::Event* last_ = nullptr;
  EventFate fate_ = EventFate::unknown;
  std::unordered_map<const cuda::Event*, EventFate> known_;
};

}  // namespace

struct RetireQueue::Entry {
  Retired retired;
  EventFate fate = EventFate::pending;
  int unknown_answers = 0;
};

RetireQueue::RetireQueue() : entries_(std::make_unique<Entries>()) {}

RetireQueue::~RetireQueue() {
  if (is_in_child()) {
    static_cast<void>(entries_.release());
  } else {
    abandon();
  }
}

void RetireQueue::add(Retired entry) {
  if (mutated(Mutation::reuse_lease_early)) entry.memory.clear();
  Entries one;
  try {
    one.emplace_back().retired = std::move(entry);
  } catch (const std::bad_alloc&) {  // to forget it would be worse than to wait
    EventFate fate = EventFate::pending;
    for (int unknown = 0; fate != EventFate::done && fate != EventFate::lost && unknown < most_unknown_answers;) {
      fate = fate_of(*entry.done);
      if (fate == EventFate::unknown || fate == EventFate::captured) ++unknown;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (fate != EventFate::done) throw;
    return;
  }
  const std::lock_guard lock(mutex_);
  if (ended_) {
    ++stats_.abandoned;
    keep_for_good(one);
    return;
  }
  entries_->splice(entries_->end(), one);
  ++stats_.pending;
}

// The latest first: if it is done, then so is earlier work of its stream when that is asked for afterwards. The other
// way round it could finish in between, and would be let go before it.
void RetireQueue::ask_all(Entries& entries) noexcept {
  Answers answers;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    entry->fate = answers.of(entry->retired.done.get());
    const bool says_nothing = entry->fate == EventFate::unknown || entry->fate == EventFate::captured;
    entry->unknown_answers = says_nothing ? entry->unknown_answers + 1 : 0;
    if (entry->unknown_answers >= most_unknown_answers) entry->fate = EventFate::lost;
  }
}

RetireQueue::Entries RetireQueue::taken_out(Entries& entries) noexcept {
  Entries finished;
  for (auto entry = entries.begin(); entry != entries.end();) {
    const auto here = entry++;
    if (here->fate == EventFate::done || here->fate == EventFate::lost) {
      finished.splice(finished.end(), entries, here);
    }
  }
  return finished;
}

void RetireQueue::let_go(Entries& entries) noexcept {
  Entries lost;
  while (!entries.empty()) {
    Entry& entry = entries.front();
    const std::function<void()> then = std::move(entry.retired.then);
    entry.retired.sources.clear();
    entry.retired.done.reset();
    if (entry.fate == EventFate::lost) {
      lost.splice(lost.end(), entries, entries.begin());
    } else {
      entries.pop_front();
    }
    if (then) then();
  }
  keep_for_good(lost);
}

std::size_t RetireQueue::reap() noexcept {
  if (is_in_child()) return 0;
  Entries taken;
  {
    const std::lock_guard lock(mutex_);
    if (reaping_ || ended_ || entries_->empty()) return 0;
    reaping_ = true;
    taken.swap(*entries_);
  }
  ask_all(taken);
  Entries finished = taken_out(taken);
  const std::size_t count = finished.size();
  std::size_t lost = 0;
  for (const Entry& entry : finished) lost += entry.fate == EventFate::lost ? 1 : 0;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) {
      stats_.abandoned += taken.size();
      stats_.pending -= taken.size();
      keep_for_good(taken);
    } else {
      entries_->splice(entries_->begin(), taken);
    }
  }
  let_go(finished);
  const std::lock_guard lock(mutex_);
  stats_.pending -= count;
  stats_.retired += count - lost;
  stats_.abandoned += lost;
  reaping_ = false;
  return count;
}

void RetireQueue::abandon() noexcept {
  if (is_in_child()) return;
  const std::lock_guard lock(mutex_);
  ended_ = true;
  stats_.abandoned += entries_->size();
  stats_.pending -= entries_->size();
  keep_for_good(*entries_);
}

RetireStats RetireQueue::stats() const noexcept {
  if (is_in_child()) return stats_;
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace ferry
