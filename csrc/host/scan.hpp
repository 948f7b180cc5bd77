// Looks for values one would rather not send on. Strides, byte order and conjugate and negative marks are honoured.
// Large tensors are shared between as many threads as the caller may use.
#pragma once

#include <cstdint>

#include "core/tensor_ref.hpp"
#include "host/kernels/kernels.hpp"

namespace ferry {

struct ScanReport {
  std::int64_t count = 0;
  std::int64_t first = -1;  // C-order flat index of the first one found, packed elements counted unpacked
};

// NaN or infinity, in either part of a complex number.
[[nodiscard]] ScanReport scan_nonfinite(const TensorRef& tensor, const Kernels& level = kernels());

// Values v without low <= v <= high; NaN is outside, and so is everything when a bound is NaN or low > high. 64-bit
// integers are compared exactly. Error(dtype) for complex numbers.
[[nodiscard]] ScanReport scan_outside(const TensorRef& tensor, double low, double high,
                                      const Kernels& level = kernels());

}  // namespace ferry
