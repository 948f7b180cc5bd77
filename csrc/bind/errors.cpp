#include "bind/errors.hpp"

namespace ferry::bind {
namespace {

const char* class_name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::copy_required: return "CopyRequiredError";
    case ErrorKind::layout: return "LayoutError";
    case ErrorKind::dtype: return "DTypeError";
    case ErrorKind::device: return "DeviceError";
    case ErrorKind::buffer_mismatch: return "BufferMismatchError";
    case ErrorKind::read_only: return "ReadOnlyError";
    case ErrorKind::autograd: return "AutogradError";
    case ErrorKind::precision_loss: return "PrecisionLossError";
  }
  return "FerryError";
}

}  // namespace

void set_python_error(const Error& error) noexcept {
  const PyRef module = PyRef::steal(PyImport_ImportModule("tensorferry._errors"));
  if (!module) return;
  const PyRef type = PyRef::steal(PyObject_GetAttrString(module.get(), class_name(error.kind())));
  if (!type) return;
  const PyRef arguments = PyRef::steal(
      Py_BuildValue("(sss)", error.given().c_str(), error.why().c_str(), error.instead().c_str()));
  if (arguments) PyErr_SetObject(type.get(), arguments.get());
}

}  // namespace ferry::bind
