// What the exchange table tells of a torch tensor, with the guards it lacks.
#pragma once

#include <optional>

#include "bind/exchange.hpp"
#include "bind/source.hpp"

namespace ferry::bind {

// What a tensor's memory stands for, and where it is.
struct TorchReading {
  DLTensor dl{};
  DType dtype{};
  bool conjugated = false;
  bool negated = false;
  PyRef storage;
};

// Reads a tensor of exact type torch.Tensor or Parameter. False when it takes Python to read it, or to refuse it, and
// when it is not on this kind of device.
bool read_torch(PyObject* tensor, const FastType& type, TorchReading& reading, DLDeviceType device = kDLCPU);

// Says the exchange table that it has no axes? False where it refuses; the memory is not looked at.
bool has_no_axes(PyObject* tensor, const FastType& type);

// An array of exact type numpy.ndarray, or such a tensor, kept alive by the array or the tensor's storage. Nothing for
// what takes Python to read.
std::optional<Source> plain_source(PyObject* object);

}  // namespace ferry::bind
