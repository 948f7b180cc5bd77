// The bare copy of one block, which says what the machine can do at best.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ferry {

// Copies `nbytes` on at most `threads` threads; `non_temporal` goes past the caches.
void raw_copy(std::byte* to, const std::byte* from, std::int64_t nbytes, bool non_temporal, int threads);

}  // namespace ferry
