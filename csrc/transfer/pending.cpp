#include "transfer/pending.hpp"

#include <algorithm>
#include <thread>

#include "transfer/event_wait.hpp"
#include "transfer/interruption.hpp"

namespace ferry {
namespace {

constexpr std::chrono::nanoseconds first_pause = std::chrono::microseconds(20);
constexpr std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(1);

}  // namespace

Pending::Pending(const cuda::Driver& driver, std::vector<std::shared_ptr<const cuda::Event>> events) noexcept
    : driver_(driver), events_(std::move(events)), done_(events_.empty()) {}

template <class Ask>
bool Pending::settle(Ask ask) const {
  if (done_.load(std::memory_order_acquire)) return true;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }
  const cuda::Functions& functions = driver_.functions();  // throws in a forked child, which is no failure of the work
  try {
    if (!ask(functions)) return false;
  } catch (const Interrupted&) {
    throw;  // nothing has failed
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    std::rethrow_exception(failure_);
  }
  done_.store(true, std::memory_order_release);
  return true;
}

bool Pending::done() const {
  return settle([this](const cuda::Functions& functions) {
    return std::all_of(events_.begin(), events_.end(), [&](const auto& event) { return is_done(functions, *event); });
  });
}

void Pending::wait() const {
  static_cast<void>(settle([this](const cuda::Functions& functions) {
    for (const auto& event : events_) ferry::wait_for(functions, *event);
    return true;
  }));
}

bool Pending::wait_for(std::chrono::nanoseconds time) const {
  const auto until = std::chrono::steady_clock::now() + time;
  for (std::chrono::nanoseconds pause = first_pause; !done(); pause = std::min(2 * pause, longest_pause)) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return false;
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, until - now));
  }
  return true;
}

}  // namespace ferry
