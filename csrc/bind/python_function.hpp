// Functions of ours that are written in Python.
#pragma once

#include "bind/py_ref.hpp"

namespace ferry::bind {

// Imported at the first call, and then kept as long as the process. To be constant-initialised: a lock around that
// would be waited for with the GIL, while the import lets go of it.
class PythonFunction {
 public:
  constexpr PythonFunction(const char* module, const char* name) noexcept : module_(module), name_(name) {}

  // Borrowed. Once torch's compiler is loaded, a version that it does not trace into.
  [[nodiscard]] PyObject* get();

 private:
  const char* module_;
  const char* name_;
  PyObject* plain_ = nullptr;
  PyObject* untraced_ = nullptr;
};

}  // namespace ferry::bind
