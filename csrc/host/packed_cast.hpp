// Makes new values whose rows are short: items are brought together in the order of the destination, then made by long
// rows.
#pragma once

#include <cstdint>

#include "host/row_pass.hpp"
#include "host/walk.hpp"

namespace ferry {

// False, and nothing was done, where rows are long enough, or the destination has no runs that are longer, or columns
// can be made instead.
bool carry_packed(const Walk<2>& walk, const RowPass& pass, std::int64_t to_itemsize, std::int64_t from_itemsize);

}  // namespace ferry
