// NumPy's casting rules, extended to the dtypes NumPy does not have.
#pragma once

#include <cstdint>

#include "core/dtype.hpp"

namespace ferry {

enum class Casting : std::uint8_t { no, equiv, safe, same_kind, unsafe, same_value };

// Is every value of `from`, infinities and NaN included, a value of `to`? Integers of 64 bits count as fitting in
// float64 and complex128, as NumPy counts them.
[[nodiscard]] bool holds_every_value(DType to, DType from) noexcept;

// NumPy's can_cast. "same_value" allows every pair: it is the values that are checked, while copying.
[[nodiscard]] bool can_cast(DType from, DType to, Casting casting) noexcept;

}  // namespace ferry
