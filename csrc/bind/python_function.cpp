#include "bind/python_function.hpp"

#include "bind/gil.hpp"

namespace ferry::bind {
namespace {

PyRef imported(const char* module_name, const char* name) {
  const PyRef module = checked(interpreted([&] { return PyImport_ImportModule(module_name); }));
  return checked(PyObject_GetAttrString(module.get(), name));
}

bool compiler_is_loaded() { return PyDict_GetItemString(PyImport_GetModuleDict(), "torch._dynamo") != nullptr; }

}  // namespace

// An import lets other threads run, who may be faster.
PyObject* PythonFunction::get() {
  if (untraced_ != nullptr) return untraced_;
  if (plain_ == nullptr) {
    PyRef function = imported(module_, name_);
    if (plain_ == nullptr) plain_ = function.release();
  }
  if (!compiler_is_loaded()) return plain_;
  const PyRef untraced = imported("tensorferry._untraced", "untraced");
  PyRef function = checked(PyObject_CallOneArg(untraced.get(), plain_));
  if (function.get() == plain_) return plain_;  // it is still being loaded
  if (untraced_ == nullptr) untraced_ = function.release();
  return untraced_;
}

}  // namespace ferry::bind
