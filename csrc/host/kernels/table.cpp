// The table of one level; kernels.cpp chooses among them.
#include "host/kernels/families.hpp"

#define FERRY_TEXT_OF(x) #x
#define FERRY_TEXT(x) FERRY_TEXT_OF(x)

namespace ferry::inline FERRY_LEVEL {

extern const Kernels table;
const Kernels table{
    .level = FERRY_TEXT(FERRY_LEVEL),
    .stream_copy = stream_copy,
    .move = moves,
    .move_rows = moves_of_rows,
    .copy_rows = copy_rows,
    .transpose = transposes,
    .far_transpose = far_transposes,
    .streamed_transpose = streamed_transposes,
    .swap = swaps,
    .complex_swap = complex_swaps,
    .move_booleans = move_booleans,
    .cast = cast_row,
    .flip = flip_signs,
    .same_float32 = same_float32,
    .same_float64 = same_float64,
    .matches = matches,
    .beyond = beyond,
    .beyond_in_magnitude = beyond_in_magnitude,
    .sum_marks = sum_marks,
    .map_pixels = map_pixels,
};

}  // namespace ferry::inline FERRY_LEVEL
