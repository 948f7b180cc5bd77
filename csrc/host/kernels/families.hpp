// What one processor level is made of; each family of kernels is a source file of its own.
#pragma once

#include "host/kernels/kernels.hpp"
#include "host/kernels/level.hpp"

namespace ferry::inline FERRY_LEVEL {

void stream_copy(std::byte* to, const std::byte* from, std::int64_t nbytes) noexcept;

// By log2 of the item size.
extern const std::array<Transpose, 5> transposes;
extern const std::array<Transpose, 5> far_transposes;
extern const std::array<Transpose, 5> streamed_transposes;
extern const std::array<MoveRow, longest_item_nbytes> moves;  // by the item size less one
extern const std::array<MoveRows, 5> moves_of_rows;           // by log2 of the item size

void copy_rows(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t rows,
               std::int64_t nbytes) noexcept;

// Reverses the bytes of each part; by log2 of the item size, and of its two parts for complex items.
extern const std::array<MoveRow, 5> swaps;
extern const std::array<MoveRow, 5> complex_swaps;

// Any byte but 0 becomes 1.
void move_booleans(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                   std::int64_t count) noexcept;

// For elements in native byte order whose memory holds their values. What comes out is what copy.hpp says. Null for
// pairs that have no loop of their own, and for equal dtypes.
[[nodiscard]] MoveRow cast_row(DType to, DType from) noexcept;

// One of the two marks is set.
[[nodiscard]] MoveRow flip_signs(DType dtype, bool conjugated, bool negated) noexcept;

[[nodiscard]] bool same_float32(const std::byte* a, const std::byte* b, std::int64_t count) noexcept;
[[nodiscard]] bool same_float64(const std::byte* a, const std::byte* b, std::int64_t count) noexcept;

// By log2 of the word size.
extern const std::array<CountWords, 4> matches;
extern const std::array<CountWords, 4> beyond;
extern const std::array<CountWords, 4> beyond_in_magnitude;

std::int64_t sum_marks(const std::byte* from, std::int64_t count, const std::uint8_t* marks) noexcept;

// As the table of a level says (kernels.hpp); for elements in native byte order.
[[nodiscard]] MapRow map_pixels(DType to, DType from) noexcept;

}  // namespace ferry::inline FERRY_LEVEL
