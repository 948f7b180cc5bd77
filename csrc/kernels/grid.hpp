// How many blocks and threads: pure functions of the work and of what the work is bound by.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/launch.hpp"

namespace ferry::gpu {

// What a launch may take of the device. Stores over the link are slow: a few blocks fill it, and more would only stand
// in the way of other kernels.
struct BlockLimit {
  std::uint32_t blocks;
  std::uint32_t threads;
};
inline constexpr BlockLimit link_bound{8, 512};

// For work in device memory: enough threads to fill a device with this many multiprocessors.
constexpr BlockLimit memory_bound(std::uint32_t multiprocessors) noexcept {
  return {std::max(multiprocessors, std::uint32_t{1}) * 8, 256};
}

// Blocks for `items` of which each thread takes `per_thread` at a time; at least one, so that a launch is valid.
constexpr Grid grid_for(std::uint64_t items, std::uint32_t per_thread, BlockLimit limit) noexcept {
  const std::uint64_t per_block = std::uint64_t{limit.threads} * per_thread;
  const std::uint64_t wanted = items / per_block + (items % per_block != 0 ? 1 : 0);
  const std::uint64_t blocks = std::min<std::uint64_t>(std::max<std::uint64_t>(wanted, 1), limit.blocks);
  return {static_cast<std::uint32_t>(blocks), limit.threads};
}

// One tile of a transpose for one block of transpose_threads at a time.
constexpr Grid grid_for_tiles(std::uint64_t tiles, BlockLimit limit) noexcept {
  const std::uint64_t blocks = std::min<std::uint64_t>(std::max<std::uint64_t>(tiles, 1), limit.blocks);
  return {static_cast<std::uint32_t>(blocks), transpose_threads};
}

}  // namespace ferry::gpu
