// How one operation is carried out, and how a kernel's stores to host memory land.
#include <algorithm>
#include <chrono>
#include <set>

#include "engine.hpp"
#include "host_pages.hpp"

namespace fake {

using namespace std::chrono_literals;

namespace {

void count_order(u64& order, u64 id) { order = (order ^ id) * 1099511628211U + 14695981039346656037U; }

}  // namespace

void Landing::land(std::size_t count) {
  for (; count > 0 && !complete(); --count) publish(pieces[landed++]);
}

std::size_t Landing::some(std::mt19937_64& random) const {
  const std::size_t left = pieces.size() - landed;
  const std::size_t few = random() % (left + 1);
  if (random() % 2 == 0) return few;
  for (std::size_t i = 0; i < left; ++i) {
    if (pieces[landed + i].release) return i + 1;
  }
  return few;
}

bool& runs_under_lock() {
  static thread_local bool under = false;
  return under;
}

bool Engine::may_run(const Operation& operation) {
  for (const Access& access : operation.accesses) {
    if (access.allocation != 0) {
      const Allocation* owner = arena_.by_number(access.allocation);
      if (owner == nullptr || owner->freed) {
        report_.violation(operation.name + " ran after device#" + std::to_string(access.allocation) + " was freed");
        return false;
      }
    } else if (access.registration != 0 && std::ranges::count(orphaned_, access.registration) > 0) {
      return false;  // reported when the registration went
    } else if (!is_mapped(access.address, access.nbytes)) {
      report_.violation(operation.name + " ran after its host memory was unmapped");
      return false;
    }
  }
  return true;
}

void Engine::carry_out(u64 id, Lock& lock) {
  Operation& operation = pending_.at(id);  // stays where it is while it runs
  operation.running = true;
  std::set<u64> opened;
  for (const Access& access : operation.accesses) {
    if (access.allocation != 0 && opened.insert(access.allocation).second) {
      arena_.open(*arena_.by_number(access.allocation));
    }
  }
  const bool alone = schedule_ != Schedule::threaded;
  alone ? show_to_sanitizer() : lock.unlock();
  order_after(accepted_key(id));
  for (const u64 before : operation.after) order_after(done_key(before));
  on_device() = true;
  runs_under_lock() = alone;
  if (operation.kernel) {
    operation.landing = operation.kernel();
  } else {
    operation.body();
  }
  runs_under_lock() = on_device() = false;
  order_before(done_key(id));
  alone ? hide_from_sanitizer() : lock.lock();
  operation.running = false;
  for (const u64 number : opened) {
    if (Allocation* allocation = arena_.by_number(number)) arena_.close(*allocation);
  }
}

bool Engine::begin(u64 id, Lock& lock) {
  Operation& operation = pending_.at(id);
  if (operation.landing) return true;
  const bool works = operation.body || operation.kernel;
  if (fault_at_execution && works) {
    if (const Result failed = fault_at_execution(operation); failed != success) {
      context_failed(operation.context_id, failed);
      return false;
    }
  }
  count_order(order_seen_, id - counted_from_);
  if (works && may_run(operation)) carry_out(id, lock);
  if (operation.landing && operation.landing->failed != success) {
    context_failed(operation.context_id, operation.landing->failed);
    return false;
  }
  return true;
}

void Engine::land_slowly(Operation& operation, Lock& lock) {
  operation.running = true;
  while (!operation.landing->complete() && may_run(operation)) {
    const std::size_t some = std::max<std::size_t>(operation.landing->some(random_), 1);
    const bool pauses = random_() % 2 == 0;
    lock.unlock();
    operation.landing->land(some);
    if (pauses) std::this_thread::sleep_for(20us);
    lock.lock();
  }
  operation.running = false;
}

void Engine::end(u64 id) {
  Operation& operation = pending_.at(id);
  show_to_sanitizer();
  if (operation.landing && may_run(operation)) operation.landing->land(operation.landing->pieces.size());
  if (!operation.body && !operation.kernel) {
    for (const u64 before : operation.after) order_after(done_key(before));
  }
  if (!operation.body) order_before(done_key(id));
  hide_from_sanitizer();
  const auto finally = std::move(operation.finally);
  pending_.erase(id);
  if (finally) finally();
  changed_.notify_all();
}

void Engine::run(u64 id, Lock& lock) {
  if (!begin(id, lock)) return;
  Operation& operation = pending_.at(id);
  if (operation.landing && schedule_ == Schedule::threaded) land_slowly(operation, lock);
  end(id);
}

void Engine::run_a_part(u64 id, Lock& lock) {
  if (!begin(id, lock)) return;
  Operation& operation = pending_.at(id);
  if (!operation.landing || operation.landing->complete()) return end(id);
  if (!may_run(operation)) return;
  show_to_sanitizer();
  operation.landing->land(operation.landing->some(random_));
  hide_from_sanitizer();
}

void Engine::show_a_part(u64 id, Lock& lock) {
  if (held_ || schedule_ == Schedule::threaded || schedule_ == Schedule::eager) return;
  u64 last = 0;
  for (const u64 at : needed_for({id})) {
    if (pending_.at(at).kernel) last = at;
  }
  if (last == 0 || random_() % 2 == 0) return;
  for (const u64 at : needed_for({last})) {
    if (is_done(at)) continue;
    at == last ? run_a_part(at, lock) : run(at, lock);
  }
}

}  // namespace fake
