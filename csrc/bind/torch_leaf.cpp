// Reads a tensor of exact type torch.Tensor or Parameter through the exchange table, with the guards it lacks.
#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/execute.hpp"
#include "bind/to_numpy.hpp"
#include "bind/view.hpp"
#include "core/checked_math.hpp"
#include "dlpack/describe.hpp"

namespace ferry::bind {
namespace {

bool has_elements(const DLTensor& tensor) noexcept {
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return false;
  }
  return true;
}

// What remembers the tensor: a weak reference, or an alias where nobody but this call holds the tensor any more.
PyRef origin_of(PyObject* tensor) {
  if (Py_REFCNT(tensor) == 1) return torch_detach(tensor);
  return checked(PyWeakref_NewRef(tensor, nullptr));
}

// The view of a tensor about which nothing is special, without building a TensorRef.
PyRef plain_view(const DLTensor& dl, DType dtype, PyRef base) {
  npy_intp strides[max_ndim];
  const npy_intp itemsize = info(dtype).itemsize;
  npy_intp packed = itemsize;
  for (int i = dl.ndim - 1; i >= 0; --i) {  // as describe() has them, so that the plan is told the same
    strides[i] = dl.shape[i] <= 1 ? packed : dl.strides[i] * itemsize;
    packed = checked_mul(packed, dl.shape[i] > 1 ? dl.shape[i] : 1).value_or(0);
  }
  void* data = dl.data != nullptr ? static_cast<std::byte*>(dl.data) + dl.byte_offset : no_elements;
  PyRef array = make_array(descr_of(dtype), dl.ndim, dl.shape, strides, data, 0);
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), base.release()) != 0) throw PythonErrorSet{};
  return array;
}

// What a tensor's memory stands for, and where it is.
struct Reading {
  DLTensor dl{};
  DType dtype{};
  bool conjugated = false;
  bool negated = false;
};

void ask_table(PyObject* tensor, const FastType& type, DLTensor& dl) {
  if (type.api->dltensor_from_py_object_no_sync(tensor, &dl) != 0) throw PythonErrorSet{};
}

// False when the table refuses, or gives no host memory, or the dtype's name needs torch to tell.
bool read(PyObject* tensor, const FastType& type, Reading& reading) {
  // Torch lets go of the GIL to answer about marks, and the table only lends the shape: so it is asked last.
  reading.negated = torch_is_neg(tensor);
  const DLTensor& dl = reading.dl;
  ask_table(tensor, type, reading.dl);
  if (dl.dtype.code == kDLComplex) {
    reading.conjugated = torch_is_conj(tensor);
    ask_table(tensor, type, reading.dl);
  }
  const auto dtype = dtype_from_dlpack(dl.dtype);
  if (dl.device.device_type != kDLCPU || !dtype || dl.ndim > max_ndim) return false;
  if (dl.data == nullptr && has_elements(dl)) return false;
  reading.dtype = *dtype;
  const bool may_be_small = *dtype == DType::uint8 || *dtype == DType::int8;  // torch.uint4 looks the same here
  return !may_be_small || torch_is_plain_byte(torch_dtype(tensor).get());
}

}  // namespace

// Nothing when the hot path cannot read the tensor: Python finds out why.
PyRef torch_leaf(PyObject* tensor, const FastType& type, const ToNumpyArguments& arguments) {
  if (torch_may_copy_on_read(tensor)) return {};
  Reading reading;
  try {
    if (!read(tensor, type, reading)) return {};
  } catch (const PythonErrorSet&) {
    PyErr_Clear();
    return {};
  }
  PyRef storage = torch_storage(tensor);
  if (!fits_storage(tensor, storage.get(), reading.dl, info(reading.dtype).itemsize)) return {};
  const Request& request = arguments.request;
  if (is_plain_view(reading.dtype, reading.negated || reading.conjugated, request)) {
    if (!info(reading.dtype).numpy_native) warn_about_extension(reading.dtype);
    return plain_view(reading.dl, reading.dtype, make_view(std::move(storage), origin_of(tensor)));
  }
  Source source;
  source.ref = describe(reading.dl);
  source.ref.conjugated = reading.conjugated;
  source.ref.negated = reading.negated;
  const Decision decision = decide(source.ref, request);
  if (!info(decision.result_dtype).numpy_native) warn_about_extension(decision.result_dtype);
  // A copy holds the storage too: without the GIL, somebody might drop the tensor.
  source.owner = make_view(std::move(storage), origin_of(tensor));
  return execute(source, decision);
}

}  // namespace ferry::bind
