#include "bind/source.hpp"

#include <string>
#include <utility>

#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "dlpack/describe.hpp"
#include "dlpack/managed.hpp"

namespace ferry::bind {
namespace {

constexpr const char* owner_name = "tensorferry.managed_tensor";

// The deleter may run Python code, which must not see an exception that is on its way.
void delete_owner(PyObject* capsule) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  delete static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, owner_name));
  PyErr_Restore(type, value, traceback);
}

ManagedSource adopt(ManagedTensor tensor) {
  const DLTensor& dl = tensor.tensor();
  const DLDevice device = dl.device;
  if (!tensor.is_readable()) {
    throw Error(ErrorKind::layout, "a DLPack tensor of a newer major version", "its memory layout is not known here",
                "ask the producer for max_version=(1, 0)");
  }
  Source source;
  source.ref = describe(dl);
  source.ref.read_only = (tensor.flags() & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  const DTypeInfo& type = info(source.ref.dtype);
  if (type.value_bits < 8 && type.elements_per_item == 1 && source.ref.dtype != DType::bool_ &&
      (tensor.flags() & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) == 0) {
    throw Error(ErrorKind::dtype, "a packed DLPack tensor of " + std::string(type.name),
                "its elements share bytes in a way only packed float4 pairs are read here",
                "convert it to an 8-bit dtype in the producing library first");
  }
  auto* owned = new ManagedTensor(std::move(tensor));
  source.owner = PyRef::steal(PyCapsule_New(owned, owner_name, delete_owner));
  if (!source.owner) {
    delete owned;
    throw PythonErrorSet{};
  }
  return {std::move(source), device};
}

Source require_host(ManagedSource managed) {
  if (is_host(managed.device.device_type)) return std::move(managed.source);
  throw Error(ErrorKind::device, std::string("a DLPack tensor on device ") + device_name(managed.device.device_type),
              "its memory cannot be read from the host",
              "copy it to the host in its own library first, or hand over a torch tensor");
}

}  // namespace

std::optional<TensorRef> describe_array(PyArrayObject* array) {
  const auto dtype = dtype_of(PyArray_DESCR(array));
  if (!dtype) return std::nullopt;
  TensorRef ref;
  ref.data = static_cast<std::byte*>(PyArray_DATA(array));
  ref.dtype = *dtype;
  const auto ndim = static_cast<std::size_t>(PyArray_NDIM(array));
  ref.layout.shape = Extents(std::span<const std::int64_t>(PyArray_DIMS(array), ndim));
  ref.layout.strides = Extents(std::span<const std::int64_t>(PyArray_STRIDES(array), ndim));
  ref.layout.itemsize = info(*dtype).itemsize;
  ref.read_only = !PyArray_ISWRITEABLE(array);
  ref.byte_swapped = PyArray_ISBYTESWAPPED(array);
  return ref;
}

Source source_of_zeros(DType dtype, const Extents& shape) {
  alignas(16) static std::byte zero[16] = {};
  Source source;
  source.ref.data = zero;
  source.ref.dtype = dtype;
  source.ref.layout = {shape, Extents(shape.size()), info(dtype).itemsize};
  source.ref.read_only = true;
  source.owner = PyRef::borrow(Py_None);
  source.no_memory = true;
  return source;
}

Source source_from_array(PyArrayObject* array) {
  auto ref = describe_array(array);
  if (!ref) {
    throw Error(ErrorKind::dtype, "an array of this dtype", "it has no counterpart outside NumPy",
                "convert it to a numeric dtype first");
  }
  return {*ref, PyRef::borrow(reinterpret_cast<PyObject*>(array)), false};
}

ManagedSource managed_source_from_capsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) throw PythonErrorSet{};
    return adopt(ManagedTensor(managed));
  }
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    if (PyCapsule_SetName(capsule, "used_dltensor") != 0) throw PythonErrorSet{};
    return adopt(ManagedTensor(managed));
  }
  const char* name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : nullptr;
  PyErr_Clear();
  throw Error(ErrorKind::layout, std::string("a capsule named ") + (name != nullptr ? name : "nothing"),
              "it holds no DLPack tensor, or was consumed before (a capsule can be used once)",
              "call the producer's __dlpack__() again for a new capsule");
}

ManagedSource managed_source_from_exchange(PyObject* producer) {
  const FastType* type = fast_type(Py_TYPE(producer));
  if (type == nullptr) {
    throw Error(ErrorKind::layout, "an object without an exchange table", "its type carries none that may be used",
                "go through its __dlpack__ method");
  }
  DLManagedTensorVersioned* managed = nullptr;
  if (type->api->managed_tensor_from_py_object_no_sync(producer, &managed) != 0 || managed == nullptr) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_BufferError, "it gives no reason");
    throw PythonErrorSet{};
  }
  return adopt(ManagedTensor(managed));
}

Source source_from_capsule(PyObject* capsule) { return require_host(managed_source_from_capsule(capsule)); }

Source source_from_exchange(PyObject* producer) { return require_host(managed_source_from_exchange(producer)); }

}  // namespace ferry::bind
