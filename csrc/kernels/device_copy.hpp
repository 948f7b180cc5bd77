// Which kernel copies a strided tensor on a device, and with which arguments: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/grid.hpp"

namespace ferry::gpu {

struct CopyAxis {
  std::int64_t extent;
  std::int64_t to_stride;  // bytes, of any sign
  std::int64_t from_stride;
};

// What is to be copied. The axes come in any order; nothing is assumed of them but that destinations do not overlap.
struct DeviceCopy {
  Address to;
  Address from;
  ElementType to_type;
  ElementType from_type;  // the same: bits are moved, whatever they mean
  std::vector<CopyAxis> axes;
};

enum class CopyMethod : std::uint8_t { rows, transpose, strided };

// Axes of extent 1 are gone, the destination's strides are positive and rise, and what can be merged is merged; so axis
// 0 runs fastest in the destination. Addresses are those of the element that comes first then. `itemsize` of a copy
// without cast grows to what a run of bytes and all addresses allow; it is one element with a cast.
struct CanonicalCopy {
  Address to;
  Address from;
  std::uint32_t itemsize;  // bytes that move at once; of the destination's element with a cast
  Cast cast;
  std::uint64_t count;  // items
  std::vector<CopyAxis> axes;
};
[[nodiscard]] CanonicalCopy canonical(const DeviceCopy& copy);

// The launch that makes the copy. Nothing for: no elements; more than max_axes merged axes; a cast of elements that are
// not aligned as element_alignment() says or that casts() has no way for.
[[nodiscard]] std::optional<Launch> launch_for(const DeviceCopy& copy, BlockLimit limit);

// The same, and a sequence number behind it (see signal.cuh); for destinations in mapped memory.
[[nodiscard]] std::optional<Launch> store_launch_for(const DeviceCopy& copy, const Signal& signal,
                                                     BlockLimit limit = link_bound);

// The method that launch_for takes, for plans and tests.
[[nodiscard]] CopyMethod method_for(const CanonicalCopy& copy) noexcept;

}  // namespace ferry::gpu
