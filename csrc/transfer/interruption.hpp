// Ends waits for a device when the waiting thread is wanted elsewhere (Ctrl-C).
#pragma once

#include <chrono>

namespace ferry {

// What a wait throws then. The work that it waited for goes on, and everything is held for it as before.
struct Interrupted {};

// While it lives, waits of this thread ask now and then whether they shall end. Others must not hold what asking needs.
class InterruptibleWaits {
 public:
  using Ask = bool (*)();
  static constexpr std::chrono::milliseconds between_questions{50};

  explicit InterruptibleWaits(Ask ask) noexcept;  // null: waits last as long as the work
  InterruptibleWaits(const InterruptibleWaits&) = delete;
  InterruptibleWaits& operator=(const InterruptibleWaits&) = delete;
  ~InterruptibleWaits();

  // Of the calling thread; null where waits are not to be interrupted.
  [[nodiscard]] static Ask current() noexcept;

 private:
  Ask before_;
};

// Asks, in a wait that cannot be made by event_wait.hpp: hold no lock. Throws Interrupted.
inline void end_if_interrupted() {
  if (const auto ask = InterruptibleWaits::current(); ask != nullptr && ask()) throw Interrupted{};
}

}  // namespace ferry
