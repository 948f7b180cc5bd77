// Conversions of one value, without branches, so that compilers turn loops over them into vector code. Their results
// are those of copy.hpp, bit for bit.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "host/exact.hpp"
#include "host/kernels/choose.hpp"
#include "host/kernels/level.hpp"
#include "host/kernels/small_float.hpp"

namespace ferry::inline FERRY_LEVEL {

#if defined(__AVX512DQ__)
inline constexpr bool has_vector_int64 = true;  // conversions between 64-bit integers and floats
#else
inline constexpr bool has_vector_int64 = false;
#endif
#if defined(__SSE4_1__)
inline constexpr bool has_vector_floor = true;
#else
inline constexpr bool has_vector_floor = false;
#endif

// What a conversion to double and back does, which compilers take for nothing: a signalling NaN becomes a quiet one.
[[nodiscard]] constexpr float quiet(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool is_nan = static_cast<std::int32_t>(bits & ~float_sign) > float_infinity;
  return std::bit_cast<float>(bits | where(is_nan, float_nan));
}

template <class Int>
concept Wide = std::integral<Int> && sizeof(Int) == sizeof(std::int64_t);

// Doubles whose last bit counts 1, and 2^32: the halves of an integer are their mantissas.
inline constexpr std::uint64_t ones_ruler = 0x4330'0000'0000'0000U;
inline constexpr std::uint64_t halves_ruler = 0x4530'0000'0000'0000U;
inline constexpr std::uint64_t low_half = 0xFFFF'FFFFU;

// One rounding.
template <Wide Int>
[[nodiscard]] constexpr double to_double(Int value) noexcept {
  if constexpr (has_vector_int64) {
    return static_cast<double>(value);
  } else {
    constexpr std::uint64_t flipped = std::is_signed_v<Int> ? std::uint64_t{1} << 31U : 0U;
    constexpr double offset = 0x1p84 + 0x1p52 + (std::is_signed_v<Int> ? 0x1p63 : 0.0);
    const auto bits = static_cast<std::uint64_t>(value);
    const auto high = std::bit_cast<double>(((bits >> 32U) ^ flipped) | halves_ruler);
    const auto low = std::bit_cast<double>((bits & low_half) | ones_ruler);
    return (high - offset) + low;
  }
}

// Exact for what double holds; of the others, a number that any later rounding to 42 bits or fewer takes for `value`.
template <Wide Int>
[[nodiscard]] constexpr double to_sticky_double(Int value) noexcept {
  constexpr std::uint64_t lost = (std::uint64_t{1} << 11U) - 1U;
  constexpr std::uint64_t edge = std::uint64_t{1} << 53U;
  const auto bits = static_cast<std::uint64_t>(value);
  const std::uint64_t sticky = (bits & ~lost) | (where((bits & lost) != 0U, lost + 1U));
  const bool is_exact = std::is_signed_v<Int> ? bits + edge < 2U * edge : bits < edge;
  return to_double(static_cast<Int>(choose(is_exact, bits, sticky)));
}

// Any later rounding to 15 bits or fewer gives what one rounding of `value` would have given.
[[nodiscard]] constexpr float to_odd_float(double value) noexcept {
  const auto nearest = static_cast<float>(value);
  const auto excess = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(static_cast<double>(nearest)) -
                                                std::bit_cast<std::uint64_t>(value));
  auto bits = std::bit_cast<std::int32_t>(nearest) - static_cast<std::int32_t>(excess > 0);
  bits |= static_cast<std::int32_t>(excess != 0);
  return std::bit_cast<float>(bits);
}

template <Wide Int>
[[nodiscard]] constexpr float to_odd_float(Int value) noexcept {
  return to_odd_float(to_sticky_double(value));
}

// Exact up to 24 bits. Of longer numbers, the last eight bits only tell whether there is something.
template <std::integral Int>
  requires(sizeof(Int) == sizeof(std::int32_t))
[[nodiscard]] constexpr float to_odd_float(Int value) noexcept {
  constexpr std::uint32_t lost = 0xFFU;
  constexpr std::uint32_t edge = std::uint32_t{1} << 24U;
  const auto bits = static_cast<std::uint32_t>(value);
  const std::uint32_t sticky = (bits & ~lost) | where((bits & lost) != 0U, lost + 1U);
  const bool is_exact = std::is_signed_v<Int> ? bits + edge < 2U * edge : bits < edge;
  return static_cast<float>(static_cast<Int>(choose(is_exact, bits, sticky)));
}

// Toward zero; `value` is within the range of Int.
template <std::integral Int, std::floating_point Float>
[[nodiscard]] constexpr Int truncate(Float value) noexcept {
  if constexpr (!Wide<Int> || has_vector_int64) {
    return static_cast<Int>(value);
  } else {
    constexpr double ruler = std::is_signed_v<Int> ? 0x1.8p52 : 0x1p52;
    const double whole = std::trunc(static_cast<double>(value));
    const double high = std::floor(whole * 0x1p-32);
    const auto high_bits = std::bit_cast<std::uint64_t>(high + ruler);
    const auto low_bits = std::bit_cast<std::uint64_t>(whole - high * 0x1p32 + 0x1p52);
    return static_cast<Int>((high_bits << 32U) | (low_bits & low_half));
  }
}

// Toward zero, saturating, NaN is 0. No value out of range reaches the conversion itself.
template <std::integral Int, std::floating_point Float>
[[nodiscard]] constexpr Int saturate(Float value) noexcept {
  using Limits = std::numeric_limits<Int>;
  constexpr auto low = static_cast<Float>(Limits::min());
  constexpr Float beyond = Float{2} * static_cast<Float>(Limits::max() / 2 + 1);
  if constexpr (Wide<Int> && !has_vector_floor) {
    // Converted one by one, where masks cost more than jumps.
    return to_integer(value, IntegerRange<Int>{Limits::min(), Limits::max()}, beyond);
  } else {
    // Floats have vector conversions to 32-bit integers, not to smaller ones.
    using Step = std::conditional_t<(sizeof(Int) < sizeof(std::int32_t)), std::int32_t, Int>;
    constexpr bool exact = Limits::digits <= std::numeric_limits<Float>::digits;
    constexpr Float high = exact ? beyond - 1 : beyond - beyond / 2 * std::numeric_limits<Float>::epsilon();
    const Float number = choose(value == value, value, Float{0});
    auto result = truncate<Step>(choose(number > low, choose(number < high, number, high), low));
    if constexpr (!exact) result |= where(number >= beyond, Limits::max());
    return static_cast<Int>(result);
  }
}

// To bool: is it other than zero? Between integers: modulo 2^bits.
template <class To, class From>
[[nodiscard]] constexpr To convert_value(From value) noexcept {
  if constexpr (std::same_as<From, BFloat16> && std::integral<To>) {
    return convert_value<To>(widen_number(value));
  } else if constexpr (SmallFloatBits<From>) {
    return convert_value<To>(widen(value));
  } else if constexpr (SmallFloatBits<To>) {
    return narrow<To>(value);
  } else if constexpr (std::same_as<To, float> && std::same_as<From, float>) {
    return quiet(value);
  } else if constexpr (std::same_as<To, bool>) {
    return value != From{0};
  } else if constexpr (std::integral<To> && std::floating_point<From>) {
    return saturate<To>(value);
  } else if constexpr (std::floating_point<To> && Wide<From>) {
    if constexpr (has_vector_int64) return static_cast<To>(value);
    if constexpr (std::same_as<To, double>) return to_double(value);
    return static_cast<To>(to_sticky_double(value));
  } else if constexpr (std::floating_point<To> && std::integral<From> && sizeof(From) < sizeof(std::int32_t)) {
    return static_cast<To>(static_cast<std::int32_t>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace ferry::inline FERRY_LEVEL
