// The array for a tensor of exact type torch.Tensor or Parameter.
#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/execute.hpp"
#include "bind/to_numpy.hpp"
#include "bind/torch_source.hpp"
#include "bind/view.hpp"
#include "core/checked_math.hpp"
#include "dlpack/describe.hpp"

namespace ferry::bind {
namespace {

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

bool share_bytes(const TensorRef& a, const TensorRef& b) noexcept {
  const ByteSpan first = span(a.layout);
  const ByteSpan second = span(b.layout);
  const auto a_start = reinterpret_cast<std::uintptr_t>(a.data);
  const auto b_start = reinterpret_cast<std::uintptr_t>(b.data);
  return a_start + static_cast<std::uintptr_t>(first.low) < b_start + static_cast<std::uintptr_t>(second.high) &&
         b_start + static_cast<std::uintptr_t>(second.low) < a_start + static_cast<std::uintptr_t>(first.high);
}

// Nothing unless `out` is plainly what the source fits into: Python says what is wrong with it.
PyRef fill(PyObject* out, const Source& source, const ToNumpyArguments& arguments) {
  auto* array = reinterpret_cast<PyArrayObject*>(out);
  const auto destination = describe_array(array);
  Request request = arguments.request;
  if (!destination || destination->read_only || request.copy == CopyPolicy::never) return {};
  const bool agrees = request.dtype_choice == DTypeChoice::keep ||
                      (request.dtype_choice == DTypeChoice::named && request.dtype == destination->dtype);
  if (!agrees || may_overlap_itself(destination->layout) || share_bytes(*destination, source.ref)) return {};
  request.into_destination = true;
  request.order = Order::keep;  // the destination has its own
  request.dtype_choice = DTypeChoice::named;
  request.dtype = destination->dtype;
  const Decision decision = decide(source.ref, request);
  if (!(decision.shape == destination->layout.shape)) return {};
  return execute(source, decision, array);
}

}  // namespace

// Nothing when the hot path cannot read the tensor: Python finds out why.
PyRef torch_leaf(PyObject* tensor, const FastType& type, const ToNumpyArguments& arguments) {
  TorchReading reading;
  if (!read_torch(tensor, type, reading)) return {};
  const Request& request = arguments.request;
  if (arguments.out == Py_None && is_plain_view(reading.dtype, reading.negated || reading.conjugated, request)) {
    if (!info(reading.dtype).numpy_native) warn_about_extension(reading.dtype);
    return plain_view(reading.dl, reading.dtype, make_view(std::move(reading.storage), origin_of(tensor)));
  }
  Source source;
  source.ref = describe(reading.dl);
  source.ref.conjugated = reading.conjugated;
  source.ref.negated = reading.negated;
  if (arguments.out != Py_None) {
    source.owner = make_view(std::move(reading.storage), origin_of(tensor));
    return fill(arguments.out, source, arguments);
  }
  const Decision decision = decide(source.ref, request);
  const bool asked = request.dtype_choice != DTypeChoice::keep;
  if (!asked && !info(decision.result_dtype).numpy_native) warn_about_extension(decision.result_dtype);
  // A copy holds the storage too: without the GIL, somebody might drop the tensor.
  source.owner = make_view(std::move(reading.storage), origin_of(tensor));
  return execute(source, decision);
}

}  // namespace ferry::bind
