// The inner loops of the engine, compiled once for each processor level and chosen at run time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/dtype.hpp"
#include "host/kernels/pixel_map.hpp"

namespace ferry {

// Copies `count` elements; a step is the distance in bytes from one to the next. The two rows do not overlap.
using MoveRow = void (*)(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                         std::int64_t count) noexcept;

// Copies rows of `nbytes`; a step is the distance from one to the next. No two rows overlap.
using CopyRows = void (*)(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                          std::int64_t rows, std::int64_t nbytes) noexcept;

// Copies `rows` rows of `count` items each.
using MoveRows = void (*)(std::byte* to, std::int64_t to_stride, std::int64_t to_step, const std::byte* from,
                          std::int64_t from_stride, std::int64_t from_step, std::int64_t rows,
                          std::int64_t count) noexcept;

// to[r * to_stride + c * itemsize] = from[c * from_stride + r * itemsize] for r < rows, c < columns.
using Transpose = void (*)(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                           std::int64_t rows, std::int64_t columns) noexcept;

// As memcpy, but past the caches. What it wrote is visible to other threads after `stream_fence`.
using StreamCopy = void (*)(std::byte* to, const std::byte* from, std::int64_t nbytes) noexcept;

// Are two packed rows the same numbers? NaN is the same as NaN, and +0 the same as -0.
using SameValues = bool (*)(const std::byte* a, const std::byte* b, std::int64_t count) noexcept;

// How many of `count` packed words answer yes to a question that has two numbers in it?
using CountWords = std::int64_t (*)(const std::byte* from, std::int64_t count, std::uint64_t a,
                                    std::uint64_t b) noexcept;

// The sum of marks[byte] over `count` bytes.
using SumMarks = std::int64_t (*)(const std::byte* from, std::int64_t count, const std::uint8_t* marks) noexcept;

// Values of one channel of an image, one after the other on both sides, which do not overlap.
using MapRow = void (*)(std::byte* to, const std::byte* from, std::int64_t count, const PixelMap& map) noexcept;

// Items of up to so many bytes are moved by loops of their own.
inline constexpr std::size_t longest_item_nbytes = 64;

// Rows of up to so many bytes are copied by loops of their own.
inline constexpr std::int64_t longest_short_row_nbytes = 512;

struct Kernels {
  std::string_view level;
  StreamCopy stream_copy;
  std::array<MoveRow, longest_item_nbytes> move;  // by the item size less one
  std::array<MoveRows, 5> move_rows;              // by log2 of the item size, 1 to 16 bytes
  CopyRows copy_rows;
  std::array<Transpose, 5> transpose;              // by log2 of the item size, 1 to 16 bytes; as are the next four
  std::array<Transpose, 5> far_transpose;          // fetches the source ahead
  std::array<Transpose, 5> streamed_transpose;     // also writes past the caches, to rows that begin with a cache line
  std::array<MoveRow, 5> swap;                     // reverses the bytes of an item; null for 1 and 16 bytes
  std::array<MoveRow, 5> complex_swap;             // reverses the bytes of each half; null for 1 and 2 bytes
  MoveRow move_booleans;                           // any byte but 0 becomes 1
  MoveRow (*cast)(DType to, DType from) noexcept;  // null for a pair that has no direct loop
  // Changes signs, of one part or both; null for a dtype whose negative is more than a sign bit.
  MoveRow (*flip)(DType dtype, bool conjugated, bool negated) noexcept;
  SameValues same_float32;
  SameValues same_float64;
  std::array<CountWords, 4> matches;  // words w with (w & a) == b; by log2 of the word size, as are the next two
  std::array<CountWords, 4> beyond;   // words w with w - a > b, modulo the size of a word
  std::array<CountWords, 4> beyond_in_magnitude;  // the same of words in sign and magnitude, put in order
  SumMarks sum_marks;
  // Null for pairs that images do not have, and from float16 and bfloat16. To those it makes float32, rounded to odd: a
  // cast then rounds only once.
  MapRow (*map_pixels)(DType to, DType from) noexcept;
};

// Those for this processor, or for the lower level that TENSORFERRY_CPU_LEVEL names.
[[nodiscard]] const Kernels& kernels() noexcept;

// Every level this processor has, the portable one first.
struct KernelLevels {
  std::array<const Kernels*, 3> levels{};
  int count = 0;
};
[[nodiscard]] KernelLevels kernel_levels() noexcept;

void stream_fence() noexcept;

}  // namespace ferry
