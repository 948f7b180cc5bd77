// Scales and shifts the values of one channel of an image.
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host/kernels/families.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <class T>
T get(const std::byte* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// A type of its own for results that are to be narrowed to float16 or bfloat16.
struct OddFloat {
  float value;
};

// Rounds to odd, to the digits of a float: a later rounding to fewer digits gives what one rounding would have given.
inline OddFloat odd_float(double value) noexcept {
  constexpr std::uint64_t kept_last = std::uint64_t{1} << 29U;
  constexpr std::uint64_t lost = kept_last - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t any_lost = ((bits & lost) + lost) & kept_last;
  return {static_cast<float>(std::bit_cast<double>((bits & ~lost) | any_lost))};
}

// To the nearest integer, ties to even, within the range of the type; NaN becomes 0.
template <class Int>
Int nearest(double value) noexcept {
  constexpr float largest = std::numeric_limits<Int>::max();
  constexpr double to_integers = 0x1.8p52;  // the last digit of sums with it counts ones
  const auto integer = static_cast<float>((value + to_integers) - to_integers);  // exact where it is not clamped
  const float positive = integer > 0.0F ? integer : 0.0F;
  return static_cast<Int>(static_cast<std::int32_t>(positive < largest ? positive : largest));
}

template <class To>
To rounded(double value) noexcept {
  if constexpr (std::is_same_v<To, OddFloat>) {
    return odd_float(value);
  } else if constexpr (std::is_integral_v<To>) {
    return nearest<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class From>
double as_double(From value) noexcept {
  if constexpr (std::is_integral_v<From>) {
    return static_cast<double>(static_cast<std::int32_t>(value));  // there are vector instructions for this type
  } else {
    return static_cast<double>(value);
  }
}

void map_bytes_in_parts(std::byte* __restrict to, const std::byte* __restrict from, std::int64_t count,
                        const PixelMap& map) noexcept {
  const float scale_high = map.scale_high;
  const float scale_low = map.scale_low;
  const float shift_high = map.shift_high;
  const float shift_low = map.shift_low;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(static_cast<std::int32_t>(get<std::uint8_t>(from + i)));
    const float result = (value * scale_high + shift_high) + (value * scale_low + shift_low);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof(float)), &result, sizeof(float));
  }
}

template <class To, class From>
void map_row(std::byte* __restrict to, const std::byte* __restrict from, std::int64_t count,
             const PixelMap& map) noexcept {
  if constexpr (std::is_same_v<To, float> && std::is_same_v<From, std::uint8_t>) {
    if (map.in_parts) return map_bytes_in_parts(to, from, count, map);
  }
  constexpr auto to_size = static_cast<std::int64_t>(sizeof(To));
  constexpr auto from_size = static_cast<std::int64_t>(sizeof(From));
  const double scale = map.scale;
  const double shift = map.shift;
  for (std::int64_t i = 0; i < count; ++i) {
    const To result = rounded<To>(as_double(get<From>(from + i * from_size)) * scale + shift);
    std::memcpy(to + i * to_size, &result, sizeof(To));
  }
}

template <class From>
MapRow row_to(DType to) noexcept {
  switch (to) {
    case DType::float16:
    case DType::bfloat16:
      return map_row<OddFloat, From>;
    case DType::float32:
      return map_row<float, From>;
    case DType::float64:
      return map_row<double, From>;
    case DType::uint8:
      return std::is_floating_point_v<From> ? map_row<std::uint8_t, From> : nullptr;
    case DType::uint16:
      return std::is_floating_point_v<From> ? map_row<std::uint16_t, From> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

MapRow map_pixels(DType to, DType from) noexcept {
  switch (from) {
    case DType::uint8:
      return row_to<std::uint8_t>(to);
    case DType::uint16:
      return row_to<std::uint16_t>(to);
    case DType::float32:
      return row_to<float>(to);
    case DType::float64:
      return row_to<double>(to);
    default:
      return nullptr;
  }
}

}  // namespace ferry::inline FERRY_LEVEL
