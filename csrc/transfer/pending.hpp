// Copies that were enqueued together: one thing to wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/event.hpp"

namespace ferry {

// Any thread. To drop it is safe: what the device may touch is held elsewhere (RetireQueue).
class Pending {
 public:
  Pending(const cuda::Driver& driver, std::vector<std::shared_ptr<const cuda::Event>> events) noexcept;

  // Asks the driver, never waits. Throws Error when the work, or earlier work on that device, failed: then every later
  // call throws the same.
  [[nodiscard]] bool done() const;
  // Blocks the host until all is done; hold no lock, and not the GIL. Spins some microseconds first. Throws Error, and
  // Interrupted, which changes nothing.
  void wait() const;
  // The same, at most so long; asks again and again with growing pauses. False when the time is up.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time) const;

 private:
  // Runs `ask` unless it is known how this ends, and remembers a failure.
  template <class Ask>
  bool settle(Ask ask) const;

  const cuda::Driver& driver_;
  const std::vector<std::shared_ptr<const cuda::Event>> events_;
  mutable std::atomic<bool> done_;
  mutable std::mutex mutex_;
  mutable std::exception_ptr failure_;
};

}  // namespace ferry
