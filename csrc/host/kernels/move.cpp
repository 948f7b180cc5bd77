// Moves items of fixed size between rows of any steps.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "host/kernels/families.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <std::int64_t value>
using Fixed = std::integral_constant<std::int64_t, value>;

template <std::size_t nbytes>
struct Word;
template <>
struct Word<1> {
  using Type = std::uint8_t;
};
template <>
struct Word<2> {
  using Type = std::uint16_t;
};
template <>
struct Word<4> {
  using Type = std::uint32_t;
};
template <>
struct Word<8> {
  using Type = std::uint64_t;
};

template <>
struct Word<16> {
  using Type [[gnu::vector_size(16)]] = std::uint64_t;
};
template <>
struct Word<32> {
  using Type [[gnu::vector_size(32)]] = std::uint64_t;
};
template <>
struct Word<64> {
  using Type [[gnu::vector_size(64)]] = std::uint64_t;
};

// How an item becomes another; here, by any number of bytes. It goes by words, the last of which may overlap the one
// before. Compilers would put an item of odd size together in memory, and wait there for its parts.
template <std::size_t nbytes>
struct Same {
  static constexpr std::size_t size = nbytes;
  static constexpr bool is_word = nbytes <= 8 && std::has_single_bit(nbytes);

  static void move(std::byte* to, const std::byte* from) noexcept {
    constexpr std::size_t word_nbytes = std::min<std::size_t>(std::bit_floor(nbytes), vector_nbytes);
    constexpr std::size_t words = (nbytes + word_nbytes - 1) / word_nbytes;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < words; ++i) {
      const std::size_t at = std::min(i * word_nbytes, nbytes - word_nbytes);
      typename Word<word_nbytes>::Type word;
      std::memcpy(&word, from + at, word_nbytes);
      std::memcpy(to + at, &word, word_nbytes);
    }
  }
};

// One that fits a register, or two of them, and changes.
template <class Item, Item (*change)(const Item&) noexcept>
struct Changed {
  static constexpr std::size_t size = sizeof(Item);
  static constexpr bool is_word = std::is_integral_v<Item>;

  static void move(std::byte* to, const std::byte* from) noexcept {
    Item item;
    std::memcpy(&item, from, sizeof(item));
    item = change(item);
    std::memcpy(to, &item, sizeof(item));
  }
};

template <class Int>
Int reversed(const Int& value) noexcept {
  if constexpr (sizeof(Int) == 1) return value;
  if constexpr (sizeof(Int) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(Int) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(Int) == 8) return __builtin_bswap64(value);
}

template <std::size_t nbytes>
using Swapped = Changed<typename Word<nbytes>::Type, reversed>;

// Each half by itself. What looks like a rotation of the whole becomes one vector shuffle.
template <class Part>
struct Pair {
  Part parts[2];
};
template <class Part>
Pair<Part> both_reversed(const Pair<Part>& item) noexcept {
  return {{reversed(item.parts[0]), reversed(item.parts[1])}};
}
template <std::size_t nbytes>
using SwappedParts = Changed<Pair<typename Word<nbytes / 2>::Type>, both_reversed>;

std::uint8_t as_truth(const std::uint8_t& item) noexcept { return item != 0 ? 1 : 0; }
using Truth = Changed<std::uint8_t, as_truth>;

// A step is a number or, for loops that become vector code, an integral constant.
template <class How, class ToStep, class FromStep>
inline void move_items(std::byte* to, ToStep to_step, const std::byte* from, FromStep from_step,
                       std::int64_t count) noexcept {
  constexpr bool any_steps = std::is_same_v<ToStep, std::int64_t> || std::is_same_v<FromStep, std::int64_t>;
  constexpr bool item_by_item = any_steps || !How::is_word;
  if constexpr (item_by_item) {  // a processor jumps back once a cycle, and could move two items meanwhile
    for (; count >= 8; count -= 8, to += 8 * to_step, from += 8 * from_step) {
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) How::move(to + k * to_step, from + k * from_step);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) How::move(to + i * to_step, from + i * from_step);
}

template <class How>
void move(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
          std::int64_t count) noexcept {
  constexpr auto size = static_cast<std::int64_t>(How::size);
  if (to_step != size) {
    if (from_step == size) return move_items<How>(to, to_step, from, Fixed<size>{}, count);
    return move_items<How>(to, to_step, from, from_step, count);
  }
  switch (from_step / size * static_cast<std::int64_t>(from_step % size == 0)) {
    case 1:
      return move_items<How>(to, Fixed<size>{}, from, Fixed<size>{}, count);
    case 2:
      return move_items<How>(to, Fixed<size>{}, from, Fixed<2 * size>{}, count);
    case 3:
      return move_items<How>(to, Fixed<size>{}, from, Fixed<3 * size>{}, count);
    case 4:
      return move_items<How>(to, Fixed<size>{}, from, Fixed<4 * size>{}, count);
    case -1:
      return move_items<How>(to, Fixed<size>{}, from, Fixed<-size>{}, count);
    default:
      break;
  }
  if (from_step == 0) return move_items<How>(to, Fixed<size>{}, from, Fixed<0>{}, count);
  move_items<How>(to, Fixed<size>{}, from, from_step, count);
}

// Whole rows. For those of a few KiB the string instruction in memcpy takes longer to start than vectors take to copy.
void copy_row(std::byte* to, const std::byte* from, std::int64_t nbytes) noexcept {
  constexpr std::int64_t worth_starting = 16384;
  if (nbytes < vector_nbytes || nbytes >= worth_starting) {
    std::memcpy(to, from, static_cast<std::size_t>(nbytes));
    return;
  }
  using Wide [[gnu::vector_size(vector_nbytes)]] = std::uint64_t;
  const auto move_vector = [=](std::int64_t at) {
    Wide value;
    std::memcpy(&value, from + at, sizeof(value));
    std::memcpy(to + at, &value, sizeof(value));
  };
  std::int64_t at = 0;
  for (; at + 4 * vector_nbytes <= nbytes; at += 4 * vector_nbytes) {
    move_vector(at);
    move_vector(at + vector_nbytes);
    move_vector(at + 2 * vector_nbytes);
    move_vector(at + 3 * vector_nbytes);
  }
  for (; at + vector_nbytes <= nbytes; at += vector_nbytes) move_vector(at);
  if (at < nbytes) move_vector(nbytes - vector_nbytes);  // again some of what has been copied
}

// One item again and again, by registers full of it.
void repeat_item16(std::byte* to, const std::byte* item, std::int64_t count) noexcept {
  using Wide [[gnu::vector_size(vector_nbytes)]] = std::uint64_t;
  constexpr std::int64_t at_once = vector_nbytes / 16;
  std::uint64_t parts[2];
  std::memcpy(parts, item, sizeof(parts));
  Wide value;
  for (int i = 0; i < vector_nbytes / 8; ++i) value[i] = parts[i % 2];
  for (; count >= at_once; count -= at_once, to += vector_nbytes) std::memcpy(to, &value, sizeof(value));
  for (; count > 0; --count, to += 16) std::memcpy(to, parts, sizeof(parts));
}

template <std::size_t nbytes>
void move_same(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
               std::int64_t count) noexcept {
  constexpr auto packed = static_cast<std::int64_t>(nbytes);
  if (to_step == packed && from_step == packed) {
    copy_row(to, from, count * packed);
  } else if (nbytes == 16 && to_step == packed && from_step == 0) {
    repeat_item16(to, from, count);
  } else {
    move<Same<nbytes>>(to, to_step, from, from_step, count);
  }
}

// Rows so short that calling for each would take as long as to move its items.
template <std::size_t nbytes>
void move_rows(std::byte* to, std::int64_t to_stride, std::int64_t to_step, const std::byte* from,
               std::int64_t from_stride, std::int64_t from_step, std::int64_t rows, std::int64_t count) noexcept {
  constexpr auto packed = static_cast<std::int64_t>(nbytes);
  for (; rows > 0; --rows, to += to_stride, from += from_stride) {
    if (to_step == packed) {
      move_items<Same<nbytes>>(to, Fixed<packed>{}, from, from_step, count);
    } else {
      move_items<Same<nbytes>>(to, to_step, from, from_step, count);
    }
  }
}

template <std::size_t... nbytes>
constexpr std::array<MoveRow, sizeof...(nbytes)> by_nbytes(std::index_sequence<nbytes...>) noexcept {
  return {move_same<nbytes + 1>...};
}

}  // namespace

const std::array<MoveRow, longest_item_nbytes> moves = by_nbytes(std::make_index_sequence<longest_item_nbytes>{});
const std::array<MoveRows, 5> moves_of_rows{move_rows<1>, move_rows<2>, move_rows<4>, move_rows<8>, move_rows<16>};
const std::array<MoveRow, 5> swaps{nullptr, move<Swapped<2>>, move<Swapped<4>>, move<Swapped<8>>, nullptr};
const std::array<MoveRow, 5> complex_swaps{nullptr, nullptr, move<SwappedParts<4>>, move<SwappedParts<8>>,
                                           move<SwappedParts<16>>};

void move_booleans(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                   std::int64_t count) noexcept {
  move<Truth>(to, to_step, from, from_step, count);
}

}  // namespace ferry::inline FERRY_LEVEL
