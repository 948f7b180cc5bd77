#include "engine.hpp"

#include <algorithm>
#include <chrono>
#include <set>

namespace fake {

using namespace std::chrono_literals;

namespace {

constexpr auto patience = 30s;  // no test may hang for ever

}  // namespace

u64 Engine::enqueue(Operation operation, Lock& lock) {
  const u64 id = ++last_;
  show_to_sanitizer();
  order_before(accepted_key(id));
  hide_from_sanitizer();
  pending_[id] = std::move(operation);
  if (schedule_ == Schedule::eager && !held_) finish(id, lock);
  changed_.notify_all();
  return id;
}

bool Engine::is_ready(const Operation& operation) const {
  return !operation.running &&
         std::all_of(operation.after.begin(), operation.after.end(), [&](u64 id) { return is_done(id); });
}

std::vector<u64> Engine::ready() const {
  std::vector<u64> all;
  for (const auto& [id, operation] : pending_) {
    if (is_ready(operation)) all.push_back(id);
  }
  return all;
}

std::vector<u64> Engine::needed_for(std::vector<u64> open) const {
  std::set<u64> needed;
  while (!open.empty()) {
    const u64 at = open.back();
    open.pop_back();
    const auto found = pending_.find(at);
    if (found == pending_.end() || !needed.insert(at).second) continue;
    open.insert(open.end(), found->second.after.begin(), found->second.after.end());
  }
  return {needed.begin(), needed.end()};  // an operation's number is greater than those it waits for
}

void Engine::saw_done(u64 id) {
  show_to_sanitizer();
  order_after(done_key(id));
  hide_from_sanitizer();
}

void Engine::finish(u64 id, Lock& lock) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!is_done(id)) {
    if (held_ || schedule_ == Schedule::threaded) {
      if (changed_.wait_until(lock.native(), deadline) == std::cv_status::timeout) {
        report_.violation("a wait of 30 s was given up");
        return;
      }
      continue;
    }
    if (schedule_ == Schedule::shuffled) {
      std::vector<u64> candidates = ready();
      if (random_() % 2 == 0) {  // as late as allowed for all the rest
        std::vector<u64> needed = needed_for({id});
        std::erase_if(candidates, [&](u64 at) { return !std::ranges::binary_search(needed, at); });
      }
      run(candidates[random_() % candidates.size()], lock);
      continue;
    }
    for (const u64 at : needed_for({id})) {
      if (!is_done(at)) run(at, lock);
    }
  }
  saw_done(id);
}

void Engine::finish_all(Lock& lock) {
  while (!pending_.empty()) {
    const u64 last = pending_.rbegin()->first;
    finish(last, lock);
    if (!is_done(last)) return;
  }
}

void Engine::progress(Lock& lock) {
  if (held_ || schedule_ != Schedule::shuffled) return;
  while (random_() % 3 == 0) {
    const auto candidates = ready();
    if (candidates.empty()) return;
    const u64 chosen = candidates[random_() % candidates.size()];
    const bool may_stay = static_cast<bool>(pending_.at(chosen).kernel) && random_() % 2 == 0;
    may_stay ? run_a_part(chosen, lock) : run(chosen, lock);
  }
}

void Engine::drop(u64 context_id) {
  std::erase_if(pending_, [&](const auto& at) { return at.second.context_id == context_id && !at.second.running; });
  changed_.notify_all();
}

void Engine::abandon(u64 context_id, Lock& lock) {
  drop(context_id);
  wait_until_idle([](const Access&) { return true; }, lock);
}

void Engine::hold(bool held, Lock& lock) {
  held_ = held;
  if (!held && schedule_ == Schedule::eager) finish_all(lock);
  changed_.notify_all();
}

std::vector<std::string> Engine::pending_on(const std::function<bool(const Access&)>& touches) const {
  std::vector<std::string> names;
  for (const auto& [id, operation] : pending_) {
    if (std::ranges::any_of(operation.accesses, touches)) names.push_back(operation.name);
  }
  return names;
}

std::vector<std::string> Engine::pending_beside(const std::vector<u64>& tail,
                                                const std::function<bool(const Access&)>& touches) const {
  const auto ordered = needed_for(tail);
  std::vector<std::string> names;
  for (const auto& [id, operation] : pending_) {
    if (std::ranges::binary_search(ordered, id)) continue;
    if (std::ranges::any_of(operation.accesses, touches)) names.push_back(operation.name);
  }
  return names;
}

void Engine::wait_until_idle(const std::function<bool(const Access&)>& touches, Lock& lock) {
  const auto busy = [&] {
    return std::ranges::any_of(pending_, [&](const auto& at) {
      return at.second.running && std::ranges::any_of(at.second.accesses, touches);
    });
  };
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (schedule_ == Schedule::threaded && busy()) {
    if (changed_.wait_until(lock.native(), deadline) == std::cv_status::timeout) return;
  }
}

void Engine::orphan(u64 registration) { orphaned_.push_back(registration); }

std::size_t Engine::pending_in(u64 stream) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(pending_, [&](const auto& at) { return at.second.stream == stream; }));
}

void Engine::finish_oldest(u64 stream, Lock& lock) {
  const auto oldest = std::ranges::find_if(pending_, [&](const auto& at) { return at.second.stream == stream; });
  if (oldest != pending_.end()) finish(oldest->first, lock);
}

void Engine::work(u64 generation) {
  Lock lock(mutex_);
  while (generation == generation_) {
    const auto candidates = held_ ? std::vector<u64>{} : ready();
    if (candidates.empty()) {
      changed_.wait_for(lock.native(), 100ms);
      continue;
    }
    if (random_() % 4 == 0) {  // let the host get ahead now and then
      lock.unlock();
      std::this_thread::sleep_for(50us);
      lock.lock();
      if (generation != generation_) return;
    }
    const u64 chosen = candidates[random_() % candidates.size()];
    const auto found = pending_.find(chosen);
    if (found != pending_.end() && is_ready(found->second) && !held_) run(chosen, lock);
  }
}

void Engine::stop_workers(Lock& lock) {
  ++generation_;
  changed_.notify_all();
  auto leaving = std::move(workers_);
  workers_.clear();
  lock.unlock();
  for (auto& worker : leaving) worker.join();
  lock.lock();
}

void Engine::forget_workers() {
  for (auto& worker : workers_) worker.detach();
  workers_.clear();
}

void Engine::set_schedule(Schedule schedule, u64 seed, Lock& lock) {
  stop_workers(lock);
  schedule_ = schedule;
  random_.seed(seed);
  order_seen_ = 0;
  counted_from_ = last_;
  if (schedule == Schedule::eager && !held_) finish_all(lock);
  if (schedule == Schedule::threaded) {
    for (int i = 0; i < 2; ++i) workers_.emplace_back([this, now = generation_] { work(now); });
  }
  changed_.notify_all();  // who waits now waits by the new schedule
}

void Engine::reset(Lock& lock) {
  stop_workers(lock);
  pending_.clear();
  orphaned_.clear();
  last_ = order_seen_ = counted_from_ = 0;
  held_ = false;
  schedule_ = Schedule::lazy;
}

}  // namespace fake
