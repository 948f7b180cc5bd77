// Reads a tensor of exact type torch.Tensor or Parameter through the exchange table, with the guards it lacks.
#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/execute.hpp"
#include "bind/to_numpy.hpp"
#include "bind/view.hpp"
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
PyRef plain_view(PyObject* tensor, const DLTensor& dl, DType dtype) {
  npy_intp strides[max_ndim];
  const npy_intp itemsize = info(dtype).itemsize;
  npy_intp packed = itemsize;
  for (int i = dl.ndim - 1; i >= 0; --i) {  // as describe() has them, so that the plan is told the same
    strides[i] = dl.shape[i] <= 1 ? packed : dl.strides[i] * itemsize;
    packed *= dl.shape[i] > 1 ? dl.shape[i] : 1;
  }
  PyRef base = make_view(torch_storage(tensor), origin_of(tensor));
  PyArray_Descr* descr = descr_of(dtype);
  Py_INCREF(descr);
  void* data = dl.data != nullptr ? static_cast<std::byte*>(dl.data) + dl.byte_offset : no_elements;
  PyRef array = checked(PyArray_NewFromDescr(&PyArray_Type, descr, dl.ndim, dl.shape, strides, data, 0, nullptr));
  if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.get()), base.release()) != 0) throw PythonErrorSet{};
  return array;
}

}  // namespace

// Nothing when the table refuses, or gives no host memory, or the dtype's name needs torch to tell: Python explains.
PyRef torch_leaf(PyObject* tensor, const FastType& type, const ToNumpyArguments& arguments) {
  if (torch_may_copy_on_read(tensor)) return {};
  DLTensor dl;
  if (type.api->dltensor_from_py_object_no_sync(tensor, &dl) != 0) {
    PyErr_Clear();
    return {};
  }
  const auto dtype = dtype_from_dlpack(dl.dtype);
  if (dl.device.device_type != kDLCPU || !dtype || dl.ndim > max_ndim) return {};
  if (dl.data == nullptr && has_elements(dl)) return {};
  if (info(*dtype).itemsize == 1 && (*dtype == DType::uint8 || *dtype == DType::int8) &&
      !torch_is_plain_byte(torch_dtype(tensor).get())) {
    return {};
  }
  const bool negated = torch_is_neg(tensor);
  const bool conjugated = info(*dtype).kind == Kind::complex && torch_is_conj(tensor);
  Request request = arguments.request;
  if (request.copy == CopyPolicy::if_needed && request.order == Order::keep && !negated && !conjugated &&
      array_dtype(*dtype) == *dtype) {
    if (!info(*dtype).numpy_native) warn_about_extension(*dtype);
    return plain_view(tensor, dl, *dtype);
  }
  Source source;
  source.ref = describe(dl);
  source.ref.conjugated = conjugated;
  source.ref.negated = negated;
  const Decision decision = decide(source.ref, request);
  if (!info(decision.result_dtype).numpy_native) warn_about_extension(decision.result_dtype);
  if (decision.path == Path::view) source.owner = make_view(torch_storage(tensor), origin_of(tensor));
  return execute(source, decision);
}

}  // namespace ferry::bind
