// What happens to one block between loading and storing: conversion of carriers, exact comparison, conj and neg.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"
#include "core/tensor_ref.hpp"
#include "host/element_io.hpp"

namespace ferry {

// Converts `count` values of the source's carrier to the destination's; what the destination cannot hold is settled
// here for integers (see copy.hpp) and left to the store's rounding for floats.
class BlockCast {
 public:
  BlockCast(DType destination, DType source) noexcept;

  void operator()(const Block& from, Block& to, std::int64_t count) const noexcept { cast_(from, to, count, bits_); }

 private:
  using Cast = void (*)(const Block& from, Block& to, std::int64_t count, int bits) noexcept;
  Cast cast_;
  int bits_;  // of the destination's value
};

// Position of the first pair that are not the same number (NaN is the same as NaN), or -1.
using CompareBlocks = std::int64_t (*)(const Block& a, const Block& b, std::int64_t count) noexcept;
[[nodiscard]] CompareBlocks block_comparison(Carrier a, Carrier b) noexcept;

// Takes the values that memory holds to the values the tensor stands for, or back: conj and neg undo themselves.
// Integers wrap at their own width, and a negative that the type lacks becomes what its store makes of it.
void apply_bits(const TensorRef& tensor, Block& block, std::int64_t count) noexcept;

}  // namespace ferry
