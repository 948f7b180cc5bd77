// Two axes change places: the one that runs fastest in the source is another one than in the destination.
#pragma once

#include "kernels/arguments.hpp"
#include "kernels/both.hpp"
#include "kernels/divisor.hpp"

namespace ferry::gpu {

inline constexpr std::uint32_t max_outer_axes = 6;
inline constexpr std::uint32_t transpose_threads = 256;

struct OuterAxis {
  std::int64_t to_stride;  // bytes, of any sign
  std::int64_t from_stride;
  WideDivisor by_extent;
};

// `across` runs fastest in the source, `along` in the destination; there, elements lie side by side.
struct TransposeArgs {
  Address to;
  Address from;
  std::uint64_t across;          // extent of the axis that is contiguous in the source
  std::uint64_t along;           // extent of the axis that is contiguous in the destination
  std::int64_t to_stride;        // bytes from one `across` to the next in the destination
  std::int64_t from_stride;      // bytes from one `along` to the next in the source
  std::uint32_t to_alignment;    // 1, 2, 4, 8 or 16: divides the address of each destination row
  std::uint32_t from_alignment;  // the same of the source; both are at least the smaller of itemsize and 16
  std::uint32_t outer_count;
  std::uint32_t unused;
  std::uint64_t tiles;          // all of them
  WideDivisor by_tiles_across;  // of one matrix
  WideDivisor by_tiles_along;
  OuterAxis outer[max_outer_axes];
};
static_assert(is_argument<TransposeArgs>);

// A tile is one line of 128 bytes wide in the source.
FERRY_BOTH constexpr std::uint32_t tile_across(std::uint32_t itemsize) noexcept { return 128U / itemsize; }
FERRY_BOTH constexpr std::uint32_t tile_along(std::uint32_t itemsize) noexcept { return itemsize == 1 ? 128U : 64U; }

}  // namespace ferry::gpu
