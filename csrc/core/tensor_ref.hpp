// A borrowed description of a tensor in host memory: where, what, how laid out, and what its bits stand for.
#pragma once

#include <cstddef>

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

[[nodiscard]] inline bool is_aligned(const TensorRef& t) noexcept {
  const auto unit = static_cast<std::int64_t>(alignment(t.dtype));
  if (reinterpret_cast<std::uintptr_t>(t.data) % static_cast<std::uintptr_t>(unit) != 0) return false;
  for (int i = 0; i < t.layout.ndim(); ++i) {
    if (t.layout.shape[i] > 1 && t.layout.strides[i] % unit != 0) return false;
  }
  return true;
}

}  // namespace ferry
