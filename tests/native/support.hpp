// Builds tensors over vectors, and reads and writes single elements by the definition of a strided layout.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "core/tensor_ref.hpp"

namespace ferry::test {

inline TensorRef tensor(void* data, DType dtype, Extents shape, Extents strides) {
  TensorRef ref;
  ref.data = static_cast<std::byte*>(data);
  ref.dtype = dtype;
  ref.layout = Layout{shape, strides, info(dtype).itemsize};
  return ref;
}

// Contiguous and one-dimensional over the whole vector.
template <class T>
TensorRef over(std::vector<T>& values, DType dtype) {
  return tensor(values.data(), dtype, {static_cast<std::int64_t>(values.size())},
                {static_cast<std::int64_t>(sizeof(T))});
}

// Byte offset of the element at C-order flat index `flat`.
inline std::int64_t offset_of(const Layout& layout, std::int64_t flat) {
  std::int64_t offset = 0;
  for (int axis = layout.ndim() - 1; axis >= 0; --axis) {
    offset += flat % layout.shape[axis] * layout.strides[axis];
    flat /= layout.shape[axis];
  }
  return offset;
}

template <class T>
T element(const TensorRef& ref, std::int64_t flat) {
  T value;
  std::memcpy(&value, ref.data + offset_of(ref.layout, flat), sizeof(T));
  return value;
}

template <class T>
void set_element(const TensorRef& ref, std::int64_t flat, T value) {
  std::memcpy(ref.data + offset_of(ref.layout, flat), &value, sizeof(T));
}

// A seeded generator that names its seed when a test fails.
class Random {
 public:
  explicit Random(std::uint32_t seed) : trace_(__FILE__, __LINE__, "seed " + std::to_string(seed)), engine_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  std::uint64_t bits() { return engine_(); }

 private:
  ::testing::ScopedTrace trace_;
  std::mt19937_64 engine_;
};

// A strided tensor in memory of its own: permuted, with gaps and reversed axes; bytes start as a pattern.
struct Strided {
  std::vector<std::byte> memory;
  TensorRef ref;
};

inline Strided random_strided(Random& random, DType dtype, const Extents& shape, bool aligned = true) {
  const std::int64_t itemsize = info(dtype).itemsize;
  const int ndim = shape.size();
  std::vector<int> axes;
  for (int axis = 0; axis < ndim; ++axis) axes.insert(axes.begin() + random.between(0, axis), axis);
  Extents strides(ndim);
  std::int64_t step = itemsize;
  std::int64_t start = 0;
  for (const int axis : axes) {
    step *= random.between(1, 2);
    strides[axis] = random.between(0, 2) == 0 ? -step : step;
    if (strides[axis] < 0) start += (shape[axis] - 1) * step;
    step *= shape[axis];
  }
  const std::int64_t shift = aligned ? 0 : random.between(0, 3);
  Strided result;
  result.memory.resize(static_cast<std::size_t>(step + shift));
  for (std::byte& byte : result.memory) byte = static_cast<std::byte>(random.bits());
  result.ref = tensor(result.memory.data() + shift + start, dtype, shape, strides);
  return result;
}

inline Extents random_shape(Random& random, int ndim) {
  Extents shape(ndim);
  for (int axis = 0; axis < ndim; ++axis) shape[axis] = random.between(1, 5);
  return shape;
}

}  // namespace ferry::test
