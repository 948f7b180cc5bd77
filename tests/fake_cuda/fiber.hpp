// Threads of a kernel: stacks that one thread of the host switches between.
#pragma once

#include <cstddef>
#include <cstdint>

/// For functions that are left on one stack and entered again on another: no sanitizer may count them.
#define FAKE_SWITCHES __attribute__((no_sanitize("thread"), no_sanitize("address"), noinline))

namespace fake {

/// The calling thread's own stack while fibers run, or a fiber that has paused.
struct FiberState {
  void* machine = nullptr;  ///< where its registers are kept
  void* sanitizer = nullptr;
};

class Fiber {
 public:
  /// `number` staggers the tops of the stacks, which would meet in the cache otherwise.
  explicit Fiber(std::size_t number);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Forget what it did; the next `resume` calls `entry`, which must begin with `arrive` and end with `pause_for_good`.
  void start(void (*entry)());
  /// Run until it pauses.
  void resume();
  void arrive();
  /// From inside: back to whoever resumed.
  FAKE_SWITCHES void pause() { leave(false); }
  FAKE_SWITCHES void pause_for_good() { leave(true); }
  bool holds(std::uintptr_t address) const { return address - stack_ < nbytes_; }

 private:
  void leave(bool for_good);

  std::uintptr_t stack_ = 0;  ///< above its guard page
  std::size_t nbytes_ = 0, number_;
  FiberState self_, caller_;
  const void* caller_stack_ = nullptr;
  std::size_t caller_nbytes_ = 0;
};

}  // namespace fake
