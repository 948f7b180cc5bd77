#include "bind/gil.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace ferry::bind {
namespace {

struct KeptState {
  bool wanted = false;
  PyThreadState* state = nullptr;
};

KeptState& kept_state() noexcept {
  static thread_local KeptState kept;
  return kept;
}

}  // namespace

void wait_for_the_end_of_the_process() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void restore_gil(PyThreadState* state) noexcept {
  try {
    PyEval_RestoreThread(state);
  } catch (...) {  // the unwinding of a thread that is being ended
    wait_for_the_end_of_the_process();
  }
}

void with_gil(const std::function<void()>& body) noexcept {
  // After the interpreter is gone nobody can take its lock; the process is ending.
  if (Py_IsInitialized() == 0) return;
  try {
    const PyGILState_STATE state = PyGILState_Ensure();
    body();
    KeptState& kept = kept_state();
    if (kept.wanted && kept.state == nullptr && state == PyGILState_UNLOCKED) {
      kept.state = PyEval_SaveThread();
    } else {
      PyGILState_Release(state);
    }
  } catch (...) {
    wait_for_the_end_of_the_process();
  }
}

PythonThread::PythonThread() noexcept { kept_state().wanted = true; }

PythonThread::~PythonThread() {
  const KeptState kept = std::exchange(kept_state(), {});
  if (kept.state == nullptr || Py_IsInitialized() == 0) return;
  restore_gil(kept.state);
  PyGILState_Release(PyGILState_UNLOCKED);  // the first one of `with_gil`
}

void release_reference(void* object) noexcept {
  with_gil([object] { Py_DECREF(static_cast<PyObject*>(object)); });
}

}  // namespace ferry::bind
