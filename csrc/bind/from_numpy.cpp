#include "bind/from_numpy.hpp"

#include <span>

#include "bind/arguments.hpp"
#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/execute.hpp"
#include "bind/gil.hpp"
#include "bind/keywords.hpp"
#include "bind/nest.hpp"
#include "bind/owned_tensor.hpp"
#include "bind/python_function.hpp"
#include "bind/source.hpp"
#include "bind/view.hpp"
#include "dlpack/managed.hpp"
#include "transfer/plan.hpp"

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

KeywordParser<6> keywords{{"device", "dtype", "casting", "copy", "readonly", "requires_grad"}};

// Fills `request` with what the hot path can do alone, or tells that it cannot: mistakes are Python's, too.
bool interpret(PyObject* const* values, PyObject* names, Request& request) {
  PyObject *device = Py_None, *dtype = Py_None, *casting = nullptr, *copy = Py_None, *readonly = nullptr,
           *requires_grad = Py_False;
  keywords.read("from_numpy", values, names, {&device, &dtype, &casting, &copy, &readonly, &requires_grad});
  if (device != Py_None || readonly != nullptr || requires_grad != Py_False) return false;
  if (copy != Py_None && copy != Py_True) return false;
  if (copy == Py_True) request.copy = CopyPolicy::always;
  if (casting != nullptr) {
    const auto rule = casting_argument(casting);
    if (!rule) return false;
    request.casting = *rule;
  }
  const auto wanted = dtype_argument(dtype);
  if (!wanted) return false;
  request.dtype_choice = wanted->choice;
  request.dtype = wanted->dtype;
  return true;
}

// A copy for which nobody has to be asked: nothing about an array that leads back to a tensor, or may map a file.
PyRef copy_plainly(PyArrayObject* array, const Request& request) {
  const auto ref = describe_array(array);
  if (!ref || torch_tensor_type() == nullptr) return {};
  const Decision decision = decide(*ref, request);
  const bool changes_dtype = decision.result_dtype != ref->dtype;
  const bool asked = request.copy == CopyPolicy::always || changes_dtype;
  if (decision.path != Path::copy || (!asked && (ref->read_only || is_over_a_tensor(array)))) return {};
  auto owned = owned_tensor(decision.result_dtype, decision.shape, decision.strides);
  if (!owned) return {};
  owned->ref.dtype = decision.value_dtype;
  copy_checked(owned->ref, *ref, decision.checks_values);
  return std::move(owned->tensor);
}

PyObject* convert_in_python(PyObject* const* args, Py_ssize_t nargs, PyObject* keyword_names) {
  static constinit PythonFunction convert("tensorferry._convert.from_numpy", "convert");
  PyObject* function = convert.get();
  return interpreted(
      [&] { return PyObject_Vectorcall(function, args, static_cast<std::size_t>(nargs), keyword_names); });
}

// A nest with nothing asked.
class TensorLeaves final : public LeafConverter {
 public:
  PyRef plain_leaf(PyObject* leaf) override {
    if (!PyArray_CheckExact(leaf)) return {};
    auto* array = reinterpret_cast<PyArrayObject*>(leaf);
    if (PyRef tensor = share(array)) return tensor;
    return copy_plainly(array, Request{.target = Target::torch});
  }

  PyRef odd_leaf(PyObject* leaf) override {
    static constinit PythonFunction convert("tensorferry._convert.from_numpy", "convert_leaf");
    return checked(interpreted([&] { return PyObject_CallOneArg(convert.get(), leaf); }));
  }
};

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
    if (keyword_names == nullptr) {
      TensorLeaves leaves;
      if (PyRef tensor = leaves.plain_leaf(a)) return tensor.release();
      if (is_container(a) && torch_tensor_type() != nullptr) return convert_nest(a, leaves).release();
    } else if (PyArray_CheckExact(a)) {
      Request request{.target = Target::torch};
      if (interpret(args + nargs, keyword_names, request)) {
        if (PyRef tensor = copy_plainly(reinterpret_cast<PyArrayObject*>(a), request)) return tensor.release();
      }
    }
    return convert_in_python(args, nargs, keyword_names);
  });
}

}  // namespace ferry::bind
