#include "bind/from_numpy.hpp"

#include <span>

#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/export.hpp"
#include "bind/keywords.hpp"
#include "bind/view.hpp"
#include "dlpack/managed.hpp"

namespace ferry::bind {
namespace {

// A view of one of our own arrays leads back to a tensor; from_numpy then gives an alias of that tensor.
bool is_over_a_tensor(PyArrayObject* array) noexcept {
  for (PyObject* base = PyArray_BASE(array); base != nullptr;
       base = PyArray_BASE(reinterpret_cast<PyArrayObject*>(base))) {
    if (is_view(base)) return true;
    if (!PyArray_Check(base)) return false;
  }
  return false;
}

// An array that torch can share as it is.
bool is_plain(PyArrayObject* array) noexcept {
  return PyArray_ISBEHAVED(array) && PyArray_NDIM(array) <= max_ndim && PyArray_DESCR(array)->type_num < NPY_USERDEF &&
         PyArray_IS_C_CONTIGUOUS(array) && !is_over_a_tensor(array);
}

PyRef share(PyArrayObject* array) {
  const FastType* torch = torch_tensor_type();
  if (torch == nullptr || !is_plain(array)) return {};
  const auto dtype = dtype_of(PyArray_DESCR(array));
  if (!dtype) return {};
  const std::span<const std::int64_t> shape(PyArray_DIMS(array), static_cast<std::size_t>(PyArray_NDIM(array)));
  Py_INCREF(reinterpret_cast<PyObject*>(array));
  DLManagedTensorVersioned* managed = export_packed(PyArray_DATA(array), *dtype, shape, {array, release_reference});
  if (managed == nullptr) {
    Py_DECREF(reinterpret_cast<PyObject*>(array));
    throw std::bad_alloc();
  }
  void* tensor = nullptr;
  if (torch->api->managed_tensor_to_py_object_no_sync(managed, &tensor) != 0) {
    managed->deleter(managed);
    throw PythonErrorSet{};
  }
  return PyRef::steal(static_cast<PyObject*>(tensor));
}

PyObject* convert_in_python(PyObject* const* args, Py_ssize_t nargs, PyObject* keyword_names) {
  static PyObject* convert = nullptr;
  if (convert == nullptr) {
    const PyRef module = checked(PyImport_ImportModule("tensorferry._from_numpy"));
    convert = checked(PyObject_GetAttrString(module.get(), "convert")).release();
  }
  return PyObject_Vectorcall(convert, args, static_cast<std::size_t>(nargs), keyword_names);
}

}  // namespace

const char from_numpy_doc[] =
    "from_numpy($module, a, /, *, device=None, dtype=None, casting='same_kind', copy=None, readonly='copy', "
    "requires_grad=False)\n--\n\n"
    "Convert an array, or a nest of arrays, to torch.";

PyObject* from_numpy(PyObject* /*module*/, PyObject* const* args, Py_ssize_t nargs, PyObject* keyword_names) noexcept {
  return guarded([&]() -> PyObject* {
    PyObject* a = positional_argument("from_numpy", args, nargs);
    if (keyword_names == nullptr && PyArray_CheckExact(a)) {
      if (PyRef tensor = share(reinterpret_cast<PyArrayObject*>(a))) return tensor.release();
    }
    return convert_in_python(args, nargs, keyword_names);
  });
}

}  // namespace ferry::bind
