// Elements at any strides on both sides: it packs, unpacks, and anything between.
#pragma once

#include "kernels/arguments.hpp"
#include "kernels/divisor.hpp"
#include "kernels/element_type.hpp"

namespace ferry::gpu {

inline constexpr std::uint32_t max_axes = 8;

struct StridedAxis {
  std::int64_t to_stride;  // bytes, of any sign
  std::int64_t from_stride;
  WideDivisor by_extent;
  Divisor by_small_extent;  // the same where count < 2^31
  std::uint32_t unused;
};

// Axis 0 runs fastest. Fill it by strided_args(), from what canonical_axes() gives.
struct StridedArgs {
  Address to;
  Address from;
  std::uint64_t count;  // items: the product of the extents
  std::uint32_t axis_count;
  std::uint32_t wide;      // 1 where count >= 2^31
  std::uint32_t itemsize;  // 1, 2, 4, 8 or 16 bytes, which divide every address; 0 in casts
  Cast cast;
  std::uint16_t unused;
  StridedAxis axes[max_axes];
};
static_assert(is_argument<StridedArgs>);

struct StridedStoreArgs {
  StridedArgs copy;
  Signal signal;
};
static_assert(is_argument<StridedStoreArgs>);

}  // namespace ferry::gpu
