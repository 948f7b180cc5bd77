// Transposes rectangles of items, block by block.
#include <algorithm>

#include "host/kernels/families.hpp"
#include "host/kernels/transpose_blocks.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

constexpr std::int64_t line_nbytes = 64;
constexpr std::int64_t ahead = 32;  // columns

inline void fetch(const std::byte* from, std::int64_t stride, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) __builtin_prefetch(from + i * stride, 0, 2);
}

template <class T>
void transpose_items(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                     std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  if (columns >= rows) {
    for (std::int64_t r = 0; r < rows; ++r)
      moves[size - 1](to + r * to_stride, size, from + r * size, from_stride, columns);
  } else {
    for (std::int64_t c = 0; c < columns; ++c)
      moves[size - 1](to + c * size, to_stride, from + c * from_stride, size, rows);
  }
}

// Few rows or columns, closely packed, as the channels of an image are: the loop over the others becomes vector code.
template <class T, int few>
void split_channels(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t count) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    for (int channel = 0; channel < few; ++channel) {
      store(to + channel * to_stride + i * size, load<T>(from + (i * few + channel) * size));
    }
  }
}

template <class T, int few>
void join_channels(std::byte* to, const std::byte* from, std::int64_t from_stride, std::int64_t count) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    for (int channel = 0; channel < few; ++channel) {
      store(to + (i * few + channel) * size, load<T>(from + channel * from_stride + i * size));
    }
  }
}

template <class T, int few>
bool transpose_few(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                   std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto packed = few * static_cast<std::int64_t>(sizeof(T));
  if (rows == few && from_stride == packed) {
    split_channels<T, few>(to, to_stride, from, columns);
  } else if (columns == few && to_stride == packed) {
    join_channels<T, few>(to, from, from_stride, rows);
  } else {
    return false;
  }
  return true;
}

// Calls `body` with where each group of items from `first` on begins; the last one takes up some of those before it.
// False where there are too few for one.
template <class Body>
inline bool for_each_group(std::int64_t first, std::int64_t count, std::int64_t at_once, Body&& body) noexcept {
  if (count < at_once) return first == count;
  for (std::int64_t i = first; i < count; i += at_once) body(std::min(i, count - at_once));
  return true;
}

// Of `count` packed rows: does half a piece that begins where the last one before `end` does stay within them?
inline bool half_fits(std::int64_t end, std::int64_t count, std::int64_t stride) noexcept {
  return (end - 1) * stride + piece_nbytes / 2 <= count * stride;
}

// All columns of the rows from `first` on, which are fewer than a register takes. Closely packed ones may be read
// beyond, into the next column.
template <class T>
void transpose_last_rows(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                         std::int64_t first, std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t at_once = vector_nbytes / size;  // columns
  const auto with_groups_of = [&](std::int64_t count, auto&& block) {
    return rows >= count && for_each_group(0, columns, at_once, [&](std::int64_t c) {
             for_each_group(first, rows, count, [&](std::int64_t r) {
               block(to + r * to_stride + c * size, from + c * from_stride + r * size);
             });
           });
  };
  if (with_groups_of(piece_items<T>, [=](std::byte* block_to, const std::byte* block_from) {
        transpose_few_rows<T>(block_to, to_stride, block_from, from_stride);
      })) {
    return;
  }
  std::int64_t begin = 0;  // of the columns that are left
  if constexpr (size <= 2) {
    if (with_groups_of(half_items<T>, [=](std::byte* block_to, const std::byte* block_from) {
          transpose_half_rows<T>(block_to, to_stride, block_from, from_stride, half_items<T>);
        })) {
      return;
    }
    if (rows > 0 && rows < half_items<T> && from_stride == rows * size) {
      for (; half_fits(begin + at_once, columns, from_stride); begin += at_once) {
        transpose_half_rows<T>(to + begin * size, to_stride, from + begin * from_stride, from_stride, rows);
      }
    }
  }
  transpose_items<T>(to + first * to_stride + begin * size, to_stride, from + first * size + begin * from_stride,
                     from_stride, rows - first, columns - begin);
}

// The columns from `first` on, which are fewer than a register takes, of whole registers of rows. Closely packed rows
// may be written beyond, as the next one follows.
template <class T>
void transpose_last_columns(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                            std::int64_t first, std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t at_once = vector_nbytes / size;  // rows
  const auto with_groups_of = [&](std::int64_t count, auto&& block) {
    return for_each_group(first, columns, count, [&](std::int64_t c) {
      for (std::int64_t r = 0; r < rows; r += at_once) {
        block(to + r * to_stride + c * size, from + c * from_stride + r * size);
      }
    });
  };
  if (with_groups_of(piece_items<T>, [=](std::byte* block_to, const std::byte* block_from) {
        transpose_lanes<T, piece_items<T>, Reach::near>(block_to, to_stride, block_from, from_stride);
      })) {
    return;
  }
  std::int64_t begin = 0;  // of the rows that are left
  if constexpr (size <= 2) {
    if (with_groups_of(half_items<T>, [=](std::byte* block_to, const std::byte* block_from) {
          transpose_half_columns<T>(block_to, to_stride, block_from, from_stride, half_items<T>);
        })) {
      return;
    }
    if (columns > 0 && columns < half_items<T> && to_stride == columns * size) {
      for (; half_fits(begin + at_once, rows, to_stride); begin += at_once) {
        transpose_half_columns<T>(to + begin * to_stride, to_stride, from + begin * size, from_stride, columns);
      }
    }
  }
  transpose_items<T>(to + first * size + begin * to_stride, to_stride, from + first * from_stride + begin * size,
                     from_stride, rows - begin, columns - first);
}

template <class T, Reach reach>
void transpose(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
               std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  if (transpose_few<T, 2>(to, to_stride, from, from_stride, rows, columns) ||
      transpose_few<T, 3>(to, to_stride, from, from_stride, rows, columns) ||
      transpose_few<T, 4>(to, to_stride, from, from_stride, rows, columns)) {
    return;
  }
  if constexpr (side<T>() == 1) {
    transpose_items<T>(to, to_stride, from, from_stride, rows, columns);
  } else {
    constexpr std::int64_t along = block_columns<T>;
    const std::int64_t whole_rows = rows / register_items<T> * register_items<T>;
    const std::int64_t whole_columns = columns / along * along;
    // Along the source's rows: with strides that are powers of two, lines that are left half read do not stay cached.
    // A line of the destination that is streamed is finished before the next one.
    constexpr std::int64_t line = reach == Reach::stream ? std::max<std::int64_t>(line_nbytes / size, along) : along;
    for (std::int64_t c = 0; c < whole_columns; c += line) {
      for (std::int64_t r = 0; r < whole_rows; r += block_rows<T>) {
        for (std::int64_t part = c; part < std::min(c + line, whole_columns); part += along) {
          const std::byte* source = from + part * from_stride + r * size;
          if constexpr (reach != Reach::near) {
            const bool next_line = block_rows<T> * size >= line_nbytes || r * size % line_nbytes == 0;
            if (next_line && part + ahead < columns) fetch(source + ahead * from_stride, from_stride, along);
          }
          transpose_block<T, reach>(to + r * to_stride + part * size, to_stride, source, from_stride);
        }
      }
    }
    if constexpr (piece_items<T> > 1) {
      transpose_last_columns<T>(to, to_stride, from, from_stride, whole_columns, whole_rows, columns);
      transpose_last_rows<T>(to, to_stride, from, from_stride, whole_rows, rows, columns);
    } else {
      transpose_items<T>(to + whole_columns * size, to_stride, from + whole_columns * from_stride, from_stride,
                         whole_rows, columns - whole_columns);
      transpose_items<T>(to + whole_rows * to_stride, to_stride, from + whole_rows * size, from_stride,
                         rows - whole_rows, columns);
    }
  }
}

template <Reach reach>
constexpr std::array<Transpose, 5> by_itemsize{transpose<std::uint8_t, reach>, transpose<std::uint16_t, reach>,
                                               transpose<std::uint32_t, reach>, transpose<std::uint64_t, reach>,
                                               transpose<Item16, reach>};

}  // namespace

const std::array<Transpose, 5> transposes = by_itemsize<Reach::near>;
const std::array<Transpose, 5> far_transposes = by_itemsize<Reach::far>;
const std::array<Transpose, 5> streamed_transposes = by_itemsize<Reach::stream>;

}  // namespace ferry::inline FERRY_LEVEL
