// Moves items of one dtype without looking at their values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"

namespace ferry {

// `count` items, each `destination_step` and `source_step` bytes from the one before. Rows may be misaligned.
using MoveRow = void (*)(std::byte* destination, std::int64_t destination_step, const std::byte* source,
                         std::int64_t source_step, std::int64_t count) noexcept;

// `swap` reverses the bytes of each number (of both parts of a complex one). Booleans come out as 0 or 1. Null for
// dtypes of fewer bits than their byte has, whose unused bits only the casting path clears.
[[nodiscard]] MoveRow row_mover(DType dtype, bool swap) noexcept;

}  // namespace ferry
