// Conversions of one value between ordinary types, without branches, so that compilers turn loops over them into vector
// code. Their results are those of copy.hpp, bit for bit.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "host/exact.hpp"

namespace ferry {

// The bits of two small formats, as types of their own.
enum class BFloat16 : std::uint16_t {};
enum class Float16 : std::uint16_t {};

template <class T>
concept SmallFloatBits = std::same_as<T, BFloat16> || std::same_as<T, Float16>;

inline constexpr std::uint32_t float_sign = 0x8000'0000U;
inline constexpr std::int32_t float_infinity = 0x7F80'0000;
inline constexpr std::uint32_t float_nan = 0x7FC0'0000U;

// A float16 subnormal counts units of 2^-24. Laid on a normal float, which is then taken away, it is scaled or rounded
// by float arithmetic in the default mode, and never small enough for a mode that flushes subnormals to zero.
inline constexpr float float16_smallest_normal = 0x1p-14F;
inline constexpr float last_bit_2_to_minus_24 = 0.5F;

// `value` where the condition holds, else 0. A conditional expression would do, but compilers make jumps of several.
template <std::integral Int>
[[nodiscard]] constexpr Int where(bool condition, Int value) noexcept {
  using Bits = std::make_unsigned_t<Int>;
  return static_cast<Int>((Bits{0} - static_cast<Bits>(condition)) & static_cast<Bits>(value));
}

// condition ? yes : no
template <std::integral Int>
[[nodiscard]] constexpr Int choose(bool condition, Int yes, Int no) noexcept {
  return static_cast<Int>(no ^ where(condition, static_cast<Int>(yes ^ no)));
}
template <std::floating_point Float>
[[nodiscard]] constexpr Float choose(bool condition, Float yes, Float no) noexcept {
  using Bits = std::conditional_t<sizeof(Float) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  return std::bit_cast<Float>(choose(condition, std::bit_cast<Bits>(yes), std::bit_cast<Bits>(no)));
}

// Magnitudes are signed integers, which more machines compare in vectors than unsigned ones.
[[nodiscard]] constexpr float widen(BFloat16 value) noexcept {
  const std::uint32_t bits = static_cast<std::uint32_t>(value) << 16U;
  const auto magnitude = static_cast<std::int32_t>(bits & ~float_sign);
  const bool is_nan = magnitude > float_infinity;
  return std::bit_cast<float>(choose(is_nan, (bits & float_sign) | float_nan, bits));
}

[[nodiscard]] constexpr float widen(Float16 value) noexcept {
  constexpr std::int32_t infinity = 0x7C00;
  constexpr std::int32_t rebias = (127 - 15) << 23;
  const std::uint32_t sign = (static_cast<std::uint32_t>(value) & 0x8000U) << 16U;
  const std::int32_t magnitude = static_cast<std::int32_t>(value) & 0x7FFF;
  const bool is_subnormal = magnitude < 0x0400;
  const bool is_nan = magnitude > infinity;
  const std::int32_t normal = (magnitude << 13) + rebias + where(magnitude >= infinity, rebias);
  const auto in_place = std::bit_cast<float>((magnitude << 13) + std::bit_cast<std::int32_t>(float16_smallest_normal));
  const auto subnormal = std::bit_cast<std::int32_t>(in_place - float16_smallest_normal);
  const std::int32_t number = choose(is_subnormal, subnormal, normal);
  const std::int32_t bits = choose(is_nan, static_cast<std::int32_t>(float_nan), number);
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) | sign);
}

template <SmallFloatBits To>
[[nodiscard]] constexpr To narrow(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits & float_sign) >> 16U;
  const auto magnitude = static_cast<std::int32_t>(bits & ~float_sign);
  const bool is_nan = magnitude > float_infinity;
  std::int32_t code = 0;
  if constexpr (std::same_as<To, BFloat16>) {
    // Rounding moves no infinity; the bits of a NaN may overflow, but are dropped.
    const auto rounded = (bits & ~float_sign) + 0x7FFFU + ((bits >> 16U) & 1U);
    code = choose(is_nan, 0x7FC0, static_cast<std::int32_t>(rounded >> 16U));
  } else {
    constexpr std::int32_t rebias = (127 - 15) << 23;
    constexpr auto beyond = std::bit_cast<std::int32_t>(65536.0F);  // its code is that of infinity
    constexpr auto smallest_normal = std::bit_cast<std::int32_t>(float16_smallest_normal);
    const std::int32_t bounded = choose(magnitude < beyond, magnitude, beyond);
    const bool is_subnormal = bounded < smallest_normal;
    const std::int32_t normal = (bounded + 0x0FFF + ((bounded >> 13) & 1) - rebias) >> 13;
    const auto in_place = std::bit_cast<std::int32_t>(std::bit_cast<float>(bounded) + last_bit_2_to_minus_24);
    const std::int32_t subnormal = in_place - std::bit_cast<std::int32_t>(last_bit_2_to_minus_24);
    code = choose(is_subnormal, subnormal, normal) | where(is_nan, 0x7E00);
  }
  return static_cast<To>(static_cast<std::uint32_t>(code) | sign);
}

// What a conversion to double and back does, which compilers take for nothing: a signalling NaN becomes a quiet one.
[[nodiscard]] constexpr float quiet(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = static_cast<std::int32_t>(bits & ~float_sign) > float_infinity;
  return std::bit_cast<float>(bits | where(is_nan, float_nan));
}

// Toward zero, saturating, NaN is 0. No value out of range reaches the conversion itself.
template <std::integral Int, std::floating_point Float>
[[nodiscard]] constexpr Int saturate(Float value) noexcept {
  using Limits = std::numeric_limits<Int>;
  constexpr auto low = static_cast<Float>(Limits::min());
  constexpr Float beyond = Float{2} * static_cast<Float>(Limits::max() / 2 + 1);
  if constexpr (sizeof(Float) > sizeof(std::int32_t) || sizeof(Int) > sizeof(std::int32_t)) {
    // Ordinary machines convert these one by one, where masks cost more than jumps.
    return to_integer(value, IntegerRange<Int>{Limits::min(), Limits::max()}, beyond);
  } else {
    // Floats have vector conversions to 32-bit integers, not to smaller ones.
    using Step = std::conditional_t<(sizeof(Int) < sizeof(std::int32_t)), std::int32_t, Int>;
    constexpr bool exact = Limits::digits <= std::numeric_limits<Float>::digits;
    constexpr Float high = exact ? beyond - 1 : beyond - beyond / 2 * std::numeric_limits<Float>::epsilon();
    // NaN is greater than nothing, and so becomes `low` first.
    auto result = static_cast<Step>(choose(value > low, choose(value < high, value, high), low));
    if constexpr (low != 0) result = where(value == value, result);
    if constexpr (!exact) result |= where(value >= beyond, Limits::max());
    return static_cast<Int>(result);
  }
}

// To bool: is it other than zero? Between integers: modulo 2^bits.
template <class To, class From>
[[nodiscard]] constexpr To convert_value(From value) noexcept {
  if constexpr (SmallFloatBits<From>) {
    return convert_value<To>(widen(value));
  } else if constexpr (SmallFloatBits<To>) {
    return narrow<To>(value);
  } else if constexpr (std::same_as<To, float> && std::same_as<From, float>) {
    return quiet(value);
  } else if constexpr (std::same_as<To, bool>) {
    return value != From{0};
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    return saturate<To>(value);
  } else if constexpr (std::floating_point<To> && std::integral<From> && sizeof(From) < sizeof(std::int32_t)) {
    return static_cast<To>(static_cast<std::int32_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace ferry
