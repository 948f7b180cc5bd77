#include "bind/from_numpy.hpp"

#include <span>

#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/gil.hpp"
#include "bind/keywords.hpp"
#include "bind/python_function.hpp"
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
  static constinit PythonFunction convert("tensorferry._convert.from_numpy", "convert");
  return PyObject_Vectorcall(convert.get(), args, static_cast<std::size_t>(nargs), keyword_names);
}

}  // namespace

const char from_numpy_doc[] =
    R"doc(from_numpy($module, a, /, *, device=None, dtype=None, casting='same_kind', copy=None, readonly='copy', requires_grad=False)
--

Convert an array, or a nest of arrays, to torch, sharing memory when that is safe.

Parameters
----------
a : array, DLPack producer, buffer or nest
    Any strides, byte order and alignment. A tensor comes back as it is; in a nest, what is no array passes through.
device : optional
    Where the tensor goes at last, through torch's ``.to(device)``, which may wait.
dtype : dtype, "numpy", "bits" or mapping, optional
    As in :func:`to_numpy`.
casting : str
    As in :func:`to_numpy`.
copy : {None, True, False}
    None shares when it can; True gives private memory; False shares or raises.
readonly : {"copy", "share", "raise"}
    What to do about a read-only array: a torch tensor is always writable.
requires_grad : bool
    Mark the result for autograd.

Returns
-------
torch.Tensor or nest
    Of an array that :func:`to_numpy` made: an alias of its tensor, with the same version counter.

Raises
------
FerryError
    Naming what was given, why it cannot be converted and what to write instead.

Examples
--------
>>> import numpy as np, tensorferry as ferry
>>> ferry.from_numpy(np.arange(3.0)[::-1], dtype="float32")
tensor([2., 1., 0.])
)doc";

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
