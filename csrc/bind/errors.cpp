#include "bind/errors.hpp"

#include "bind/gil.hpp"

namespace ferry::bind {
namespace {

const char* class_name(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::copy_required:
      return "CopyRequiredError";
    case ErrorKind::layout:
      return "LayoutError";
    case ErrorKind::dtype:
      return "DTypeError";
    case ErrorKind::device:
      return "DeviceError";
    case ErrorKind::buffer_mismatch:
      return "BufferMismatchError";
    case ErrorKind::read_only:
      return "ReadOnlyError";
    case ErrorKind::autograd:
      return "AutogradError";
    case ErrorKind::precision_loss:
      return "PrecisionLossError";
  }
  return "FerryError";
}

// The exception's `index`, a tuple. Without it the message still names the element.
void set_index(PyObject* exception, const Extents& index) noexcept {
  const PyRef tuple = PyRef::steal(PyTuple_New(index.size()));
  if (!tuple) return;
  for (int i = 0; i < index.size(); ++i) PyTuple_SET_ITEM(tuple.get(), i, PyLong_FromLongLong(index[i]));
  PyObject_SetAttrString(exception, "index", tuple.get());
}

}  // namespace

void set_python_error(const Error& error) noexcept {
  const PyRef module = PyRef::steal(PyImport_ImportModule("tensorferry._errors"));
  if (!module) return;
  const PyRef type = PyRef::steal(PyObject_GetAttrString(module.get(), class_name(error.kind())));
  if (!type) return;
  const PyRef arguments =
      PyRef::steal(Py_BuildValue("(sss)", error.given().c_str(), error.why().c_str(), error.instead().c_str()));
  if (!arguments) return;
  const PyRef exception = PyRef::steal(interpreted([&] { return PyObject_CallObject(type.get(), arguments.get()); }));
  if (!exception) return;
  if (error.kind() == ErrorKind::precision_loss) set_index(exception.get(), error.index());
  PyErr_SetObject(type.get(), exception.get());
}

}  // namespace ferry::bind
