// Letting go of the GIL, and taking it again, also while the interpreter is shutting down.
#pragma once

#include <functional>

#include "bind/py_ref.hpp"

namespace ferry::bind {

// Takes the GIL back. Once the interpreter shuts down CPython ends every other thread that asks for it, up to 3.13 by
// unwinding its stack: through frames that own Python objects, without the GIL. Such a thread waits for the end of the
// process instead.
void restore_gil(PyThreadState* state) noexcept;

// Drops one reference from any thread, unless the interpreter is gone.
void release_reference(void* object) noexcept;

// Does not return: there is nothing left to do for a thread that is being ended.
[[noreturn]] void wait_for_the_end_of_the_process();

// Makes a call that runs Python code. There, too, CPython ends threads that are late: by unwinding, through frames of
// ours that own Python objects or may not throw.
template <class Call>
auto interpreted(Call call) {
  try {
    return call();
  } catch (...) {  // Python's own functions throw nothing else
    wait_for_the_end_of_the_process();
  }
}

// Runs `body`, which must not throw, with the GIL, from any thread; not once the interpreter is gone.
void with_gil(const std::function<void()>& body) noexcept;

// Inside it Python knows the thread as one, from its first `with_gil` on. Without it each call makes a thread state of
// its own and drops it: values of `threading.local` would go with it, and CPython before 3.12.9 crashes where that
// meets `tracemalloc.stop()`. For a thread that Python has not made, and that takes no part in a fork.
class PythonThread {
 public:
  PythonThread() noexcept;
  PythonThread(const PythonThread&) = delete;
  PythonThread& operator=(const PythonThread&) = delete;
  ~PythonThread();
};

class GilReleased {
 public:
  explicit GilReleased(bool release) : state_(release ? PyEval_SaveThread() : nullptr) {}
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    if (state_ != nullptr) restore_gil(state_);
  }

 private:
  PyThreadState* state_;
};

}  // namespace ferry::bind
