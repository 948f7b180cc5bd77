// One scalar tensor as a number.
#pragma once

#include <optional>

#include "bind/exchange.hpp"
#include "core/dtype.hpp"

namespace ferry::bind {

// Where the one element of a host tensor lies, and as what.
struct Scalar {
  const std::byte* data = nullptr;
  DType dtype{};
  PyRef storage;  // where it had to be asked for; else the tensor is enough while the GIL is held

  // The value, where a double holds it exactly and Python would have a float.
  [[nodiscard]] std::optional<double> floating() const noexcept;
  // Any value as a Python number. Throws PythonErrorSet.
  [[nodiscard]] PyRef number() const;
};

// The value of the commonest of all: a float32 tensor of no dimensions on the host. Nothing for others.
[[nodiscard]] std::optional<double> plain_float_of(PyObject* tensor, const FastType& type) noexcept;

// Nothing for what takes Python to read: tensors elsewhere, of more elements, complex ones, or without memory. Reads
// what `item()` would read.
[[nodiscard]] std::optional<Scalar> scalar_of(PyObject* tensor, const FastType& type);

}  // namespace ferry::bind
