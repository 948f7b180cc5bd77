// How the threads of a grid share items among them.
#pragma once

#include "kernels/platform.cuh"

namespace ferry::gpu {

// Indices of items and the step from one of a thread's items to its next. 32 bits do while items and threads stay below
// 2^31 and 2^29: a thread looks at most four steps ahead.
template <class Index>
FERRY_DEVICE Index first_item() {
  return static_cast<Index>(block_index()) * threads_in_block() + thread_index();
}
template <class Index>
FERRY_DEVICE Index item_step() {
  return static_cast<Index>(blocks_in_grid()) * threads_in_block();
}

inline constexpr std::uint32_t items_at_once = 4;  // loads on their way at the same time

}  // namespace ferry::gpu
