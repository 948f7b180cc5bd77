// Letting go of the GIL, and taking it again, also while the interpreter is shutting down.
#pragma once

#include "bind/py_ref.hpp"

namespace ferry::bind {

// Takes the GIL back. Once the interpreter shuts down CPython ends every other thread that asks for it, up to 3.13 by
// unwinding its stack: through frames that own Python objects, without the GIL. Such a thread waits for the end of the
// process instead.
void restore_gil(PyThreadState* state) noexcept;

// Drops one reference from any thread, unless the interpreter is gone.
void release_reference(void* object) noexcept;

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
