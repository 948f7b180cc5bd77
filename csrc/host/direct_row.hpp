// Rows between common pairs of dtypes in one loop, without a block in between.
#pragma once

#include "core/dtype.hpp"
#include "host/move_row.hpp"

namespace ferry {

// What a MoveRow takes: the two walk memory alike.
using DirectRow = MoveRow;

// For elements in native byte order whose memory holds their values. What comes out is what copy.hpp says. Null for
// pairs that have none, and for equal dtypes, which row_mover serves.
[[nodiscard]] DirectRow direct_row(DType to, DType from) noexcept;

}  // namespace ferry
