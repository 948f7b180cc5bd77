// Rows of equal width, each in one piece, at a fixed step on either side. One row is a dense copy.
#pragma once

#include "kernels/arguments.hpp"
#include "kernels/divisor.hpp"
#include "kernels/element_type.hpp"

namespace ferry::gpu {

// A work item is a window of 16 bytes of the destination, or a group of elements in casts. Fill it by row_args() or
// row_cast_args().
struct RowArgs {
  Address to;
  Address from;
  std::int64_t to_pitch;  // bytes, of any sign
  std::int64_t from_pitch;
  std::uint64_t rows;
  std::uint64_t width;    // bytes; elements in casts
  WideDivisor by_items;   // items per row
  Divisor by_few_items;   // the same where rows * items per row < 2^31
  std::uint32_t wide;     // 1 where it is not
  std::uint32_t aligned;  // 1 where both ends of every row are multiples of 16
  Cast cast;
  std::uint16_t unused;
  std::uint32_t unused2;
};
static_assert(is_argument<RowArgs>);

inline constexpr std::uint32_t index_limit = std::uint32_t{1} << 31U;

constexpr bool are_aligned(const RowArgs& args) noexcept {
  const std::uint64_t ends = args.to | args.from;
  const std::uint64_t pitches =
      args.rows > 1 ? static_cast<std::uint64_t>(args.to_pitch) | static_cast<std::uint64_t>(args.from_pitch) : 0;
  return ((ends | pitches) % 16) == 0;
}

constexpr RowArgs with_items(RowArgs args, std::uint64_t items_per_row) noexcept {
  args.by_items = wide_divisor_of(items_per_row == 0 ? 1 : items_per_row);
  // Not their product, which may exceed 64 bits.
  args.wide = args.rows != 0 && args.by_items.divisor >= index_limit / args.rows ? 1 : 0;
  args.by_few_items = divisor_of(args.wide != 0 ? 1 : static_cast<std::uint32_t>(args.by_items.divisor));
  args.aligned = are_aligned(args) ? 1 : 0;
  return args;
}

// Bytes as they are, for ferry_rows.
constexpr RowArgs row_args(Address to, std::int64_t to_pitch, Address from, std::int64_t from_pitch, std::uint64_t rows,
                           std::uint64_t width_nbytes) noexcept {
  const RowArgs args{to, from, to_pitch, from_pitch, rows, width_nbytes, {}, {}, 0, 0, no_cast, 0, 0};
  // A row that begins within a window may end within one more.
  return with_items(args, (width_nbytes + 15) / 16 + (are_aligned(args) ? 0 : 1));
}

// How many elements one thread converts at once: the smaller of the two kinds fills 16 bytes.
constexpr std::uint32_t group_elements(Cast cast) noexcept {
  const std::uint32_t to = itemsize(static_cast<ElementType>(cast.to));
  const std::uint32_t from = itemsize(static_cast<ElementType>(cast.from));
  return 16U / (to < from ? to : from);
}

// For ferry_rows_cast and the kernels of one pair; elements are aligned as element_alignment() says.
constexpr RowArgs row_cast_args(Address to, std::int64_t to_pitch, Address from, std::int64_t from_pitch,
                                std::uint64_t rows, std::uint64_t width_elements, Cast cast) noexcept {
  const RowArgs args{to, from, to_pitch, from_pitch, rows, width_elements, {}, {}, 0, 0, cast, 0, 0};
  const std::uint64_t group = group_elements(cast);
  return with_items(args, (width_elements + group - 1) / group);
}

}  // namespace ferry::gpu
