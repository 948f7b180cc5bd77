#include "bind/torch_source.hpp"

#include "bind/errors.hpp"
#include "dlpack/describe.hpp"

namespace ferry::bind {
namespace {

bool has_elements(const DLTensor& tensor) noexcept {
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] == 0) return false;
  }
  return true;
}

void ask_table(PyObject* tensor, const FastType& type, DLTensor& dl) {
  if (type.api->dltensor_from_py_object_no_sync(tensor, &dl) != 0) throw PythonErrorSet{};
}

// False when the table refuses, or gives memory elsewhere, or the dtype's name needs torch to tell.
bool ask_torch(PyObject* tensor, const FastType& type, TorchReading& reading, DLDeviceType device) {
  // Torch lets go of the GIL to answer about marks, and the table only lends the shape: so it is asked last.
  reading.negated = torch_is_neg(tensor);
  const DLTensor& dl = reading.dl;
  ask_table(tensor, type, reading.dl);
  if (dl.dtype.code == kDLComplex) {
    reading.conjugated = torch_is_conj(tensor);
    ask_table(tensor, type, reading.dl);
  }
  const auto dtype = dtype_from_dlpack(dl.dtype);
  if (dl.device.device_type != device || !dtype || dl.ndim > max_ndim) return false;
  if (dl.data == nullptr && has_elements(dl)) return false;
  reading.dtype = *dtype;
  const bool may_be_small = *dtype == DType::uint8 || *dtype == DType::int8;  // torch.uint4 looks the same here
  return !may_be_small || torch_is_plain_byte(torch_dtype(tensor).get());
}

}  // namespace

bool read_torch(PyObject* tensor, const FastType& type, TorchReading& reading, DLDeviceType device) {
  if (torch_may_copy_on_read(tensor)) return false;
  try {
    if (!ask_torch(tensor, type, reading, device)) return false;
  } catch (const PythonErrorSet&) {
    PyErr_Clear();
    return false;
  }
  reading.storage = torch_storage(tensor);
  return fits_storage(tensor, reading.storage.get(), reading.dl, info(reading.dtype).itemsize);
}

bool has_no_axes(PyObject* tensor, const FastType& type) {
  if (torch_may_copy_on_read(tensor)) return false;
  DLTensor dl{};
  if (type.api->dltensor_from_py_object_no_sync(tensor, &dl) == 0) return dl.ndim == 0;
  PyErr_Clear();
  return false;
}

std::optional<Source> plain_source(PyObject* object) {
  Source source;
  if (PyArray_CheckExact(object)) {
    const auto ref = describe_array(reinterpret_cast<PyArrayObject*>(object));
    if (!ref) return std::nullopt;
    source.ref = *ref;
    source.owner = PyRef::borrow(object);
    return source;
  }
  const FastType* type = fast_type(Py_TYPE(object));
  TorchReading reading;
  if (type == nullptr || !type->is_torch || !read_torch(object, *type, reading)) return std::nullopt;
  source.ref = describe(reading.dl);
  source.ref.conjugated = reading.conjugated;
  source.ref.negated = reading.negated;
  source.owner = std::move(reading.storage);
  return source;
}

}  // namespace ferry::bind
