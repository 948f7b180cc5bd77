// A borrowed description of a tensor in host memory: where, what, how laid out, and what its bits stand for.
#pragma once

#include <cstddef>
#include <string>

#include "core/dtype.hpp"
#include "core/layout.hpp"

namespace ferry {

struct TensorRef {
  std::byte* data = nullptr;
  DType dtype = DType::uint8;
  Layout layout;
  bool read_only = false;
  bool conjugated = false;    // the value is the conjugate of what memory holds
  bool negated = false;       // the value is the negative of what memory holds
  bool byte_swapped = false;  // memory holds the other byte order
};

// Are the address and every stride that matters multiples of the dtype's alignment?
[[nodiscard]] bool is_aligned(const TensorRef& t) noexcept;

// "a (3, 4) bfloat16 tensor", for messages.
[[nodiscard]] std::string summary(const TensorRef& source);

}  // namespace ferry
