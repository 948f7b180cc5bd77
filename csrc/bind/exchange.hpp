// The DLPack C exchange table that a producer's type carries, read once per type.
#pragma once

#include <cstdint>

#include "bind/py_ref.hpp"
#include "dlpack/abi.hpp"

namespace ferry::bind {

// How the hot path may read instances of one exact type.
struct FastType {
  PyTypeObject* type = nullptr;
  const DLPackExchangeAPI* api = nullptr;
  bool is_torch = false;  // torch.Tensor or torch.nn.Parameter itself: needs torch's guards, has its storage
};

// nullptr unless instances of exactly `type` can be read through a table: not for subclasses of torch.Tensor (Python
// code decides about those), nor where a class overrides `__dlpack__` below the class that owns the table.
const FastType* fast_type(PyTypeObject* type);

// torch's table for making tensors; nullptr while torch is not imported or has none.
const FastType* torch_tensor_type();

// False after TENSORFERRY_NO_EXCHANGE_API=1.
bool exchange_api_enabled() noexcept;

// Cheap questions to a tensor of exact type torch.Tensor or Parameter, by the C functions behind its methods.
// Each throws PythonErrorSet when the method raises.
bool torch_is_neg(PyObject* tensor);
bool torch_is_conj(PyObject* tensor);
PyRef torch_storage(PyObject* tensor);
PyRef torch_dtype(PyObject* tensor);
bool torch_requires_grad(PyObject* tensor);
PyRef torch_detach(PyObject* tensor);

// Does the storage hold every element that shape and strides reach? Not after somebody shrank it.
bool fits_storage(PyObject* tensor, PyObject* storage, const DLTensor& described, std::int64_t itemsize);

// Does the tensor share its storage with a snapshot, so that reading it through the table would copy all of it? Also
// true for tensors without a storage that could tell.
bool torch_is_copy_on_write(PyObject* tensor);

// The same, without asking before copy="lazy" made the first such storage: for calls that have no time to ask.
void note_lazy_snapshot() noexcept;
bool torch_may_copy_on_read(PyObject* tensor);

// Is the dtype one that DLPack and ours describe by the same bits (torch.uint8 and int8, not torch.uint4)?
bool torch_is_plain_byte(PyObject* dtype);

}  // namespace ferry::bind
