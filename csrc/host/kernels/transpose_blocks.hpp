// Blocks of items that are transposed in vector registers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "host/kernels/level.hpp"
#include "host/kernels/stream.hpp"

namespace ferry::inline FERRY_LEVEL {

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

// Interleaving rows i and i + m/2 for all i, log2(m) times, transposes each lane of n items; or two halves of it, where
// there are half as many rows.
template <class T, int n, int m = n>
inline void interleave_rows(Vector<T> (&rows)[std::size_t{m}]) noexcept {
  constexpr auto positions =
      std::make_integer_sequence<int, vector_nbytes / static_cast<int>(sizeof(typename Register<T>::Element))>{};
  Vector<T> next[std::size_t{m}];
#pragma GCC unroll 8
  for (int stage = 1; stage < m; stage *= 2) {
#pragma GCC unroll 16
    for (int i = 0; i < m / 2; ++i) {
      next[2 * i] = interleave<T, n, false>(rows[i], rows[i + m / 2], positions);
      next[2 * i + 1] = interleave<T, n, true>(rows[i], rows[i + m / 2], positions);
    }
#pragma GCC unroll 16
    for (int i = 0; i < m; ++i) rows[i] = next[i];
  }
}

// As many rows as a register holds, of n columns.
template <class T, int n, Reach reach>
inline void transpose_lanes(std::byte* to, std::int64_t to_stride, const std::byte* from,
                            std::int64_t from_stride) noexcept {
  Vector<T> rows[std::size_t{n}];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) rows[i] = load<Vector<T>>(from + i * from_stride);
  interleave_rows<T, n>(rows);
  constexpr int lane_nbytes = n * static_cast<int>(sizeof(T));
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if constexpr (reach == Reach::stream && lane_nbytes == vector_nbytes) {
      stream_vector(to + i * to_stride, rows[i]);
      continue;
    }
#pragma GCC unroll 16
    for (int lane = 0; lane < vector_nbytes / lane_nbytes; ++lane) {
      std::memcpy(to + (lane * n + i) * to_stride, reinterpret_cast<const std::byte*>(&rows[i]) + lane * lane_nbytes,
                  lane_nbytes);
    }
  }
}

inline constexpr int piece_nbytes = 16;
inline constexpr int pieces = vector_nbytes / piece_nbytes;

// Items of a piece: what is left where a register reaches too far is transposed by so many rows, or columns.
template <class T>
inline constexpr int piece_items = piece_nbytes / static_cast<int>(sizeof(T));

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
template <class T, Reach reach = Reach::near>
inline void transpose_few_rows(std::byte* to, std::int64_t to_stride, const std::byte* from,
                               std::int64_t from_stride) noexcept {
  constexpr int n = piece_items<T>;
  Vector<T> rows[std::size_t{n}];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) rows[i] = load_pieces<T, pieces>(from + i * from_stride, n * from_stride);
  interleave_rows<T, n>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if constexpr (reach == Reach::stream) {
      stream_vector(to + i * to_stride, rows[i]);
    } else {
      store(to + i * to_stride, rows[i]);
    }
  }
}

// Does a block take a piece of as many columns as a register holds, so that whole registers are written? Larger items
// are transposed within whole registers.
template <class T>
inline constexpr bool by_pieces = sizeof(T) <= 2 && pieces > 1;

// The block by which most items are transposed.
template <class T>
inline constexpr int register_items = vector_nbytes / static_cast<int>(sizeof(T));
template <class T>
inline constexpr int block_rows = by_pieces<T> ? piece_items<T> : register_items<T>;
template <class T>
inline constexpr int block_columns = by_pieces<T> ? register_items<T> : side<T>();

template <class T, Reach reach>
inline void transpose_block(std::byte* to, std::int64_t to_stride, const std::byte* from,
                            std::int64_t from_stride) noexcept {
  if constexpr (by_pieces<T>) {
    transpose_few_rows<T, reach>(to, to_stride, from, from_stride);
  } else {
    transpose_lanes<T, block_columns<T>, reach>(to, to_stride, from, from_stride);
  }
}

// Half a piece, of items of one or two bytes.
template <class T>
inline constexpr int half_items = piece_items<T> / 2;

template <class T>
using Twice = std::conditional_t<sizeof(T) == 1, std::uint16_t, std::uint32_t>;

template <class T>
inline Pieces<T, 1> load_half(const std::byte* from) noexcept {
  return std::bit_cast<Pieces<T, 1>>(Pieces<std::uint64_t, 1>{load<std::uint64_t>(from), 0});
}

template <class T, int... i>
inline Pieces<Twice<T>, 1> load_pair(const std::byte* from, std::int64_t stride,
                                     std::integer_sequence<int, i...>) noexcept {
  return std::bit_cast<Pieces<Twice<T>, 1>>(
      __builtin_shufflevector(load_half<T>(from), load_half<T>(from + stride), (i % 2 * piece_items<T> + i / 2)...));
}

template <class T, int count>
inline Pieces<Twice<T>, count> load_pairs(const std::byte* from, std::int64_t stride) noexcept {
  if constexpr (count == 1) {
    return load_pair<T>(from, stride, std::make_integer_sequence<int, piece_items<T>>{});
  } else {
    constexpr std::int64_t columns = count / 2 * piece_items<T>;
    return join<Twice<T>, count / 2>(load_pairs<T, count / 2>(from, stride),
                                     load_pairs<T, count / 2>(from + columns * stride, stride),
                                     std::make_integer_sequence<int, count * half_items<T>>{});
  }
}

// At most half as many rows as a piece holds; half a piece of each column is read. Two columns, interleaved, are one of
// items twice as large.
template <class T>
inline void transpose_half_rows(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                                std::int64_t rows) noexcept {
  constexpr int n = half_items<T>;
  Vector<Twice<T>> pairs[std::size_t{n}];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) pairs[i] = load_pairs<T, pieces>(from + 2 * i * from_stride, from_stride);
  interleave_rows<Twice<T>, n>(pairs);
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if (i < rows) store(to + i * to_stride, pairs[i]);
  }
}

// At most half as many columns as a piece holds; half a piece of each row is written, one row after the other.
template <class T>
inline void transpose_half_columns(std::byte* to, std::int64_t to_stride, const std::byte* from,
                                   std::int64_t from_stride, std::int64_t columns) noexcept {
  constexpr int n = half_items<T>;
  Vector<T> rows[std::size_t{n}];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) rows[i] = i < columns ? load<Vector<T>>(from + i * from_stride) : Vector<T>{};
  interleave_rows<T, piece_items<T>, n>(rows);
  const std::byte* next = reinterpret_cast<const std::byte*>(rows);
#pragma GCC unroll 16
  for (int piece = 0; piece < pieces; ++piece, next += piece_nbytes) {
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
#pragma GCC unroll 16
      for (int half = 0; half < 2; ++half, to += to_stride) {
        std::memcpy(to, next + i * vector_nbytes + half * piece_nbytes / 2, piece_nbytes / 2);
      }
    }
  }
}

}  // namespace ferry::inline FERRY_LEVEL
