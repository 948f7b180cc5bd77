#include "bind/exchange.hpp"

#include <array>
#include <cstdlib>
#include <cstring>

#include "bind/gil.hpp"

namespace ferry::bind {
namespace {

constexpr const char* table_attribute = "__dlpack_c_exchange_api__";

// A bounded memory of types that have a table. Entries hold their type, so an address is never another type's.
constexpr std::size_t capacity = 32;
std::array<FastType, capacity> known{};
std::size_t known_count = 0;

// A method of torch.Tensor, called through its C function when CPython's descriptor shows one.
class Method {
 public:
  void bind_to(PyObject* type, const char* name) {
    descriptor_ = checked(PyObject_GetAttrString(type, name)).release();
    if (Py_IS_TYPE(descriptor_, &PyMethodDescr_Type)) {
      const PyMethodDef* definition = reinterpret_cast<PyMethodDescrObject*>(descriptor_)->d_method;
      if ((definition->ml_flags & ~METH_COEXIST) == METH_NOARGS) function_ = definition->ml_meth;
    }
  }
  [[nodiscard]] PyRef operator()(PyObject* self) const {
    return checked(interpreted(
        [&] { return function_ != nullptr ? function_(self, nullptr) : PyObject_CallOneArg(descriptor_, self); }));
  }

 private:
  PyObject* descriptor_ = nullptr;
  PyCFunction function_ = nullptr;
};

// A property of torch.Tensor, read through its C getter when there is one.
class Property {
 public:
  void bind_to(PyObject* type, const char* name) {
    name_ = checked(PyUnicode_InternFromString(name)).release();
    const PyRef descriptor = checked(PyObject_GetAttr(type, name_));
    if (Py_IS_TYPE(descriptor.get(), &PyGetSetDescr_Type)) {
      definition_ = reinterpret_cast<PyGetSetDescrObject*>(descriptor.get())->d_getset;
    }
  }
  [[nodiscard]] PyRef operator()(PyObject* self) const {
    return checked(definition_ != nullptr ? definition_->get(self, definition_->closure)
                                          : PyObject_GetAttr(self, name_));
  }

 private:
  PyObject* name_ = nullptr;
  PyGetSetDef* definition_ = nullptr;
};

struct Torch {
  PyTypeObject* tensor = nullptr;
  PyTypeObject* parameter = nullptr;
  PyObject* uint8 = nullptr;
  PyObject* int8 = nullptr;
  Method is_neg;
  Method is_conj;
  Method storage;
  Method detach;
  Method storage_offset;
  Property dtype;
  Property requires_grad;
  PyObject* is_copy_on_write = nullptr;  // once it was asked for; None where torch has no such function
  bool has_lazy_snapshots = false;
};
Torch torch;  // filled when torch is first seen; lives as long as the process

bool is_loaded(PyObject* module) {
  // A module that is still being imported has no classes yet.
  return module != nullptr && PyObject_HasAttrString(module, "Tensor") != 0 &&
         PyObject_HasAttrString(module, "nn") != 0;
}

bool find_torch() {
  if (torch.tensor != nullptr) return true;
  PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  if (!is_loaded(module)) return false;
  const PyRef nn = checked(PyObject_GetAttrString(module, "nn"));
  const PyRef parameter = PyRef::steal(PyObject_GetAttrString(nn.get(), "Parameter"));
  if (!parameter) {
    PyErr_Clear();
    return false;
  }
  PyRef tensor = checked(PyObject_GetAttrString(module, "Tensor"));
  torch.is_neg.bind_to(tensor.get(), "is_neg");
  torch.is_conj.bind_to(tensor.get(), "is_conj");
  torch.storage.bind_to(tensor.get(), "untyped_storage");
  torch.detach.bind_to(tensor.get(), "detach");
  torch.storage_offset.bind_to(tensor.get(), "storage_offset");
  torch.dtype.bind_to(tensor.get(), "dtype");
  torch.requires_grad.bind_to(tensor.get(), "requires_grad");
  torch.uint8 = checked(PyObject_GetAttrString(module, "uint8")).release();
  torch.int8 = checked(PyObject_GetAttrString(module, "int8")).release();
  torch.parameter = reinterpret_cast<PyTypeObject*>(PyRef(parameter).release());
  torch.tensor = reinterpret_cast<PyTypeObject*>(tensor.release());
  return true;
}

// The first class in the method resolution order whose own dictionary has `name`; -1 when none has.
Py_ssize_t owner_of(PyTypeObject* type, const char* name) {
  PyObject* order = type->tp_mro;
  if (order == nullptr) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(order); ++i) {
    const PyRef dict = PyRef::steal(PyObject_GetAttrString(PyTuple_GET_ITEM(order, i), "__dict__"));
    if (!dict) {
      PyErr_Clear();
      continue;
    }
    if (PyMapping_HasKeyString(dict.get(), name) != 0) return i;
  }
  return -1;
}

const DLPackExchangeAPI* read_table(PyTypeObject* type) {
  const PyRef capsule = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), table_attribute));
  if (!capsule || !PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api")) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* header =
      static_cast<const DLPackExchangeAPIHeader*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  while (header != nullptr && header->version.major != DLPACK_MAJOR_VERSION) header = header->prev_api;
  return reinterpret_cast<const DLPackExchangeAPI*>(header);
}

FastType classify(PyTypeObject* type) {
  const Py_ssize_t table_owner = owner_of(type, table_attribute);
  if (table_owner < 0) return {};
  const Py_ssize_t method_owner = owner_of(type, "__dlpack__");
  if (method_owner >= 0 && method_owner < table_owner) return {};
  const bool exact_torch = find_torch() && (type == torch.tensor || type == torch.parameter);
  if (!exact_torch && torch.tensor != nullptr && PyType_IsSubtype(type, torch.tensor) != 0) return {};
  const DLPackExchangeAPI* api = read_table(type);
  if (api == nullptr || api->managed_tensor_from_py_object_no_sync == nullptr) return {};
  if (exact_torch && api->dltensor_from_py_object_no_sync == nullptr) return {};
  return {type, api, exact_torch};
}

bool truth(const PyRef& value) { return value.get() == Py_True; }

PyRef copy_on_write_question() {
  const PyRef module = PyRef::steal(PyImport_ImportModule("torch._C"));
  PyRef function = module ? PyRef::steal(PyObject_GetAttrString(module.get(), "_is_cow_tensor")) : PyRef{};
  PyErr_Clear();
  return function ? function : PyRef::borrow(Py_None);
}

}  // namespace

bool exchange_api_enabled() noexcept {
  static const bool enabled = [] {
    const char* value = std::getenv("TENSORFERRY_NO_EXCHANGE_API");
    return value == nullptr || std::strcmp(value, "") == 0 || std::strcmp(value, "0") == 0;
  }();
  return enabled;
}

const FastType* fast_type(PyTypeObject* type) {
  for (std::size_t i = 0; i < known_count; ++i) {
    if (known[i].type == type) return &known[i];
  }
  if (!exchange_api_enabled()) return nullptr;
  // Types without a table are looked at again each time: they take the slower path anyway.
  const FastType found = classify(type);
  if (found.api == nullptr) return nullptr;
  if (known_count == capacity) {
    thread_local FastType passing;  // as are types beyond the memory's bound
    passing = found;
    return &passing;
  }
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  known[known_count] = found;
  return &known[known_count++];
}

const FastType* torch_tensor_type() { return find_torch() ? fast_type(torch.tensor) : nullptr; }

bool torch_is_neg(PyObject* tensor) { return truth(torch.is_neg(tensor)); }
bool torch_is_conj(PyObject* tensor) { return truth(torch.is_conj(tensor)); }
PyRef torch_storage(PyObject* tensor) { return torch.storage(tensor); }
PyRef torch_dtype(PyObject* tensor) { return torch.dtype(tensor); }
bool torch_requires_grad(PyObject* tensor) { return truth(torch.requires_grad(tensor)); }
PyRef torch_detach(PyObject* tensor) { return torch.detach(tensor); }

bool fits_storage(PyObject* tensor, PyObject* storage, const DLTensor& described, std::int64_t itemsize) {
  constexpr std::uintptr_t torch_alignment = 64;  // of memory that torch allocates
  const PyMappingMethods* mapping = Py_TYPE(storage)->tp_as_mapping;
  if (mapping == nullptr || mapping->mp_length == nullptr) return true;
  std::int64_t last = 0;
  for (int i = 0; i < described.ndim; ++i) {
    if (described.shape[i] == 0) return true;
    last += (described.shape[i] - 1) * described.strides[i];
  }
  const Py_ssize_t nbytes = mapping->mp_length(storage);
  if (nbytes < 0) throw PythonErrorSet{};
  const std::int64_t reach = (last + 1) * itemsize;
  // A tensor as large as its storage begins where the storage does. Asking where it begins costs as much as the rest.
  if (reach == nbytes && reinterpret_cast<std::uintptr_t>(described.data) % torch_alignment == 0) return true;
  const PyRef offset = torch.storage_offset(tensor);
  return reach + PyLong_AsLongLong(offset.get()) * itemsize <= nbytes;
}

void note_lazy_snapshot() noexcept { torch.has_lazy_snapshots = true; }

bool torch_may_copy_on_read(PyObject* tensor) { return torch.has_lazy_snapshots && torch_is_copy_on_write(tensor); }

bool torch_is_copy_on_write(PyObject* tensor) {
  if (torch.is_copy_on_write == nullptr) torch.is_copy_on_write = copy_on_write_question().release();
  if (torch.is_copy_on_write == Py_None) return false;
  const PyRef answer = PyRef::steal(interpreted([&] { return PyObject_CallOneArg(torch.is_copy_on_write, tensor); }));
  if (answer) return truth(answer);
  PyErr_Clear();  // sparse and wrapped tensors have no storage to ask about
  return true;
}

bool torch_is_plain_byte(PyObject* dtype) { return dtype == torch.uint8 || dtype == torch.int8; }

}  // namespace ferry::bind
