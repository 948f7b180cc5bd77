// A tensor taken from any Python object: the description, and what keeps its memory alive.
#pragma once

#include <optional>

#include "bind/numpy_api.hpp"
#include "bind/py_ref.hpp"
#include "core/tensor_ref.hpp"
#include "dlpack/abi.hpp"

namespace ferry::bind {

struct Source {
  TensorRef ref;
  PyRef owner;             // becomes the base of a sharing array
  bool no_memory = false;  // every value is zero: `ref` points at one zero that all elements share
};

// A tensor of zeros without storage.
Source source_of_zeros(DType dtype, const Extents& shape);

// None when the dtype has no name of ours. Takes no reference; the array is the owner.
std::optional<TensorRef> describe_array(PyArrayObject* array);

Source source_from_array(PyArrayObject* array);

// Consumes a DLPack capsule, versioned or old. A capsule of the wrong kind, or used before, is refused.
Source source_from_capsule(PyObject* capsule);

// Through the exchange table of a type that is not torch's.
Source source_from_exchange(PyObject* producer);

// A tensor on any device, which the host may be unable to read.
struct ManagedSource {
  Source source;
  DLDevice device;
};

ManagedSource managed_source_from_capsule(PyObject* capsule);
ManagedSource managed_source_from_exchange(PyObject* producer);

}  // namespace ferry::bind
