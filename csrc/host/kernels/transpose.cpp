// Transposes blocks of items in vector registers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "host/kernels/families.hpp"
#include "host/kernels/stream.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

struct Item16 {
  std::uint64_t parts[2];
};

template <class T>
inline T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
inline void store(std::byte* to, const T& value) noexcept {
  std::memcpy(to, &value, sizeof(T));
}

// The vector registers that hold items of type T, as the compiler knows them.
template <class T>
struct Register {
  using Element = T;
  static constexpr int elements_per_item = 1;
};
template <>
struct Register<Item16> {
  using Element = std::uint64_t;
  static constexpr int elements_per_item = 2;
};

template <class T>
using Vector [[gnu::vector_size(vector_nbytes)]] = typename Register<T>::Element;

// Items of a register within which they can be interleaved at the price of one instruction: up to 16 bits the lanes of
// 16 bytes, else the whole of it.
template <class T>
constexpr int side() noexcept {
  return (sizeof(T) <= 2 ? 16 : vector_nbytes) / static_cast<int>(sizeof(T));
}

// Where element `at` comes from when the first, or second, halves of two vectors' lanes of n items are interleaved item
// by item.
template <class T, int n, bool second>
constexpr int interleaved(int at) noexcept {
  constexpr int group = Register<T>::elements_per_item;
  constexpr int all = vector_nbytes / static_cast<int>(sizeof(T));
  const int item = at / group;
  const int lane = item / n * n;
  const int within = item % n;
  return ((within % 2) * all + lane + within / 2 + (second ? n / 2 : 0)) * group + at % group;
}

template <class T, int n, bool second, int... i>
inline Vector<T> interleave(Vector<T> a, Vector<T> b, std::integer_sequence<int, i...>) noexcept {
  return __builtin_shufflevector(a, b, interleaved<T, n, second>(i)...);
}

// How a block is transposed.
enum class Reach : std::uint8_t {
  near,    // both sides lie in caches
  far,     // the source does not: lines are fetched some columns ahead
  stream,  // and the destination, of whole aligned lines, is written past them
};

// Interleaving rows i and i + n/2 for all i, log2(n) times, transposes each lane of n items.
template <class T, int n>
inline void interleave_rows(Vector<T> (&rows)[std::size_t{n}]) noexcept {
  constexpr auto positions =
      std::make_integer_sequence<int, vector_nbytes / static_cast<int>(sizeof(typename Register<T>::Element))>{};
  Vector<T> next[std::size_t{n}];
#pragma GCC unroll 8
  for (int stage = 1; stage < n; stage *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < n / 2; ++i) {
      next[2 * i] = interleave<T, n, false>(rows[i], rows[i + n / 2], positions);
      next[2 * i + 1] = interleave<T, n, true>(rows[i], rows[i + n / 2], positions);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) rows[i] = next[i];
  }
}

// As many rows as a register holds, of n columns.
template <class T, int n, Reach reach>
inline void transpose_lanes(std::byte* to, std::int64_t to_stride, const std::byte* from,
                            std::int64_t from_stride) noexcept {
  Vector<T> rows[std::size_t{n}];
  for (int i = 0; i < n; ++i) rows[i] = load<Vector<T>>(from + i * from_stride);
  interleave_rows<T, n>(rows);
  constexpr int lane_nbytes = n * static_cast<int>(sizeof(T));
  for (int i = 0; i < n; ++i) {
    if constexpr (reach == Reach::stream && lane_nbytes == vector_nbytes) {
      stream_vector(to + i * to_stride, rows[i]);
      continue;
    }
    for (int lane = 0; lane < vector_nbytes / lane_nbytes; ++lane) {
      std::memcpy(to + (lane * n + i) * to_stride, reinterpret_cast<const std::byte*>(&rows[i]) + lane * lane_nbytes,
                  lane_nbytes);
    }
  }
}

constexpr int piece_nbytes = 16;
constexpr int pieces = vector_nbytes / piece_nbytes;

// Items of a piece: what is left where a register reaches too far is transposed by so many rows, or columns.
template <class T>
constexpr int piece_items = piece_nbytes / static_cast<int>(sizeof(T));

template <class T, int count>
using Pieces [[gnu::vector_size(count * piece_nbytes)]] = typename Register<T>::Element;

template <class T, int count, int... i>
inline Pieces<T, 2 * count> join(Pieces<T, count> a, Pieces<T, count> b, std::integer_sequence<int, i...>) noexcept {
  return __builtin_shufflevector(a, b, i...);
}

// Pieces that lie `step` apart, as one register. Put together in memory, they would come back late.
template <class T, int count>
inline Pieces<T, count> load_pieces(const std::byte* from, std::int64_t step) noexcept {
  if constexpr (count == 1) {
    return load<Pieces<T, 1>>(from);
  } else {
    constexpr auto elements = count * piece_nbytes / static_cast<int>(sizeof(typename Register<T>::Element));
    return join<T, count / 2>(load_pieces<T, count / 2>(from, step),
                              load_pieces<T, count / 2>(from + count / 2 * step, step),
                              std::make_integer_sequence<int, elements>{});
  }
}

// As many rows as a piece holds: each lane transposes columns of its own, so that whole registers are written.
template <class T>
inline void transpose_few_rows(std::byte* to, std::int64_t to_stride, const std::byte* from,
                               std::int64_t from_stride) noexcept {
  constexpr int n = piece_items<T>;
  Vector<T> rows[std::size_t{n}];
  for (int i = 0; i < n; ++i) rows[i] = load_pieces<T, pieces>(from + i * from_stride, n * from_stride);
  interleave_rows<T, n>(rows);
  for (int i = 0; i < n; ++i) store(to + i * to_stride, rows[i]);
}

constexpr std::int64_t line_nbytes = 64;
constexpr std::int64_t ahead = 32;  // columns

inline void fetch(const std::byte* from, std::int64_t stride, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) __builtin_prefetch(from + i * stride, 0, 2);
}

template <class T>
void transpose_items(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                     std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      store(to + r * to_stride + c * size, load<T>(from + c * from_stride + r * size));
    }
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

// All columns of the rows from `first` on, which are fewer than a register takes.
template <class T>
void transpose_last_rows(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                         std::int64_t first, std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const bool done = for_each_group(0, columns, vector_nbytes / size, [&](std::int64_t c) {
    for_each_group(first, rows, piece_items<T>, [&](std::int64_t r) {
      transpose_few_rows<T>(to + r * to_stride + c * size, to_stride, from + c * from_stride + r * size, from_stride);
    });
  });
  if (done && rows >= piece_items<T>) return;
  transpose_items<T>(to + first * to_stride, to_stride, from + first * size, from_stride, rows - first, columns);
}

// The columns from `first` on, which are fewer than a register takes, of whole registers of rows.
template <class T>
void transpose_last_columns(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                            std::int64_t first, std::int64_t rows, std::int64_t columns) noexcept {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  const bool done = for_each_group(first, columns, piece_items<T>, [&](std::int64_t c) {
    for (std::int64_t r = 0; r < rows; r += vector_nbytes / size) {
      transpose_lanes<T, piece_items<T>, Reach::near>(to + r * to_stride + c * size, to_stride,
                                                      from + c * from_stride + r * size, from_stride);
    }
  });
  if (done) return;
  transpose_items<T>(to + first * size, to_stride, from + first * from_stride, from_stride, rows, columns - first);
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
    constexpr std::int64_t across = vector_nbytes / size;  // rows
    constexpr std::int64_t along = side<T>();              // columns
    const std::int64_t whole_rows = rows / across * across;
    const std::int64_t whole_columns = columns / along * along;
    // Along the source's rows: with strides that are powers of two, lines that are left half read do not stay cached.
    // A line of the destination that is streamed is finished before the next one.
    constexpr std::int64_t line = reach == Reach::stream ? line_nbytes / size : along;
    for (std::int64_t c = 0; c < whole_columns; c += line) {
      for (std::int64_t r = 0; r < whole_rows; r += across) {
        for (std::int64_t part = c; part < std::min(c + line, whole_columns); part += along) {
          const std::byte* source = from + part * from_stride + r * size;
          if constexpr (reach != Reach::near) {
            if (part + ahead < columns) fetch(source + ahead * from_stride, from_stride, along);
          }
          transpose_lanes<T, along, reach>(to + r * to_stride + part * size, to_stride, source, from_stride);
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
