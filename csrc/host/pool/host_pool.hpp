// The pool that private copies in host memory come from.
#pragma once

#include "host/pool/pool.hpp"

namespace ferry {

// Smaller memory comes from malloc. Measured: one copy at a time costs the same there, but of many that live at once
// malloc gives the pages of 8 KiB and more back to the system, and takes three times as long from then on.
constexpr std::size_t pooled_from_nbytes = std::size_t{8} << 10;

// Of memory, at most this share is kept idle unless somebody sets another limit.
constexpr std::size_t idle_share_of_memory = 16;

// Made at the first call; forked children have their own copy. Never destroyed: arrays may die later than any static.
[[nodiscard]] Pool& host_pool();

}  // namespace ferry
