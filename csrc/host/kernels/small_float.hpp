// Values of the small floating-point formats, one at a time and without branches, so that compilers turn loops over
// them into vector code. The results are those of float_format.hpp.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "host/float_format.hpp"
#include "host/kernels/choose.hpp"
#include "host/kernels/level.hpp"

namespace ferry::inline FERRY_LEVEL {

// The bits of one value, as a type of its own.
template <DType dtype>
struct SmallFloat {
  static constexpr FloatFormat format = float_format(dtype);
  using Bits = std::conditional_t<(format.total_bits() > 8), std::uint16_t, std::uint8_t>;
  Bits bits;
};

using Float16 = SmallFloat<DType::float16>;
using BFloat16 = SmallFloat<DType::bfloat16>;

template <class T>
inline constexpr bool is_small_float = false;
template <DType dtype>
inline constexpr bool is_small_float<SmallFloat<dtype>> = true;

template <class T>
concept SmallFloatBits = is_small_float<T>;

// The bits of a power of two in float32, normal or not.
[[nodiscard]] consteval std::int32_t power_bits(int exponent) noexcept {
  const int field = exponent + 127;
  return field > 0 ? field << 23 : 1 << (22 + field);
}

inline constexpr std::uint32_t float_sign = 0x8000'0000U;
inline constexpr std::int32_t float_infinity = 0x7F80'0000;
inline constexpr std::uint32_t float_nan = 0x7FC0'0000U;
inline constexpr int float_bias = 127;

// A subnormal number counts units of the format's last bit. Laid on a normal float, which is then taken away, it is
// scaled, or rounded, by float arithmetic in the default mode, and never so small that a mode which flushes subnormals
// to zero would see it. Magnitudes are signed integers, which more machines compare in vectors than unsigned ones.
template <DType dtype>
[[nodiscard]] constexpr float widen(SmallFloat<dtype> value) noexcept {
  constexpr FloatFormat format = SmallFloat<dtype>::format;
  constexpr int shift = 23 - format.mantissa_bits;
  constexpr auto sign_bit = static_cast<std::int32_t>(format.sign_bit());
  constexpr std::int32_t rebias = (float_bias - format.bias) * (1 << 23);
  const auto code = static_cast<std::int32_t>(value.bits);
  if constexpr (format.specials == Specials::exponent_only) {
    const std::int32_t number = choose(code == 0, power_bits(-format.bias), code << shift);
    return std::bit_cast<float>(choose(code == sign_bit - 1, static_cast<std::int32_t>(float_nan), number));
  } else {
    const std::uint32_t sign = static_cast<std::uint32_t>(code & sign_bit) << (32 - format.total_bits());
    const std::int32_t magnitude = code & (sign_bit - 1);
    std::int32_t number = (magnitude << shift) + rebias;
    bool is_nan = code == sign_bit;
    if constexpr (format.specials == Specials::ieee) {
      constexpr auto infinity = static_cast<std::int32_t>(format.infinity());
      constexpr std::int32_t beyond = float_infinity - (infinity << shift) - rebias;
      if constexpr (beyond != 0) number += where(magnitude >= infinity, beyond);
      is_nan = magnitude > infinity;
    }
    if constexpr (format.specials == Specials::nan_only) is_nan = magnitude == sign_bit - 1;
    if constexpr (rebias != 0) {
      constexpr std::int32_t smallest_normal = power_bits(1 - format.bias);
      const auto in_place = std::bit_cast<float>((magnitude << shift) + smallest_normal);
      const auto subnormal = std::bit_cast<std::int32_t>(in_place - std::bit_cast<float>(smallest_normal));
      number = choose(magnitude < (1 << format.mantissa_bits), subnormal, number);
    }
    number = choose(is_nan, static_cast<std::int32_t>(float_nan), number);
    return std::bit_cast<float>(static_cast<std::uint32_t>(number) | sign);
  }
}

// The same for all but a NaN, which stays one.
[[nodiscard]] constexpr float widen_number(BFloat16 value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}

// The rounding of `narrow`, for what is no NaN.
[[nodiscard]] constexpr BFloat16 narrow_number(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

// To nearest, ties to even, in one rounding.
template <SmallFloatBits To>
[[nodiscard]] constexpr To narrow(float value) noexcept {
  constexpr FloatFormat format = To::format;
  constexpr int dropped = 23 - format.mantissa_bits;
  constexpr auto sign_bit = static_cast<std::int32_t>(format.sign_bit());
  constexpr std::int32_t rebias = (float_bias - format.bias) * (1 << 23);
  constexpr std::int32_t smallest_normal = power_bits(1 - format.bias);
  // One step beyond the format's largest exponent: for the formats that have an infinity, its code.
  constexpr int top_exponent = (1 << format.exponent_bits) - (format.specials == Specials::ieee ? 1 : 0) - format.bias;
  constexpr std::int32_t beyond = top_exponent > float_bias ? float_infinity : power_bits(top_exponent);

  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int32_t>(bits & ~float_sign);
  const std::int32_t bounded = choose(magnitude < beyond, magnitude, beyond);
  // The last bit that is kept; where the mantissa has none, it is the leading one.
  const std::int32_t last = format.mantissa_bits > 0 ? (bounded >> dropped) & 1 : where(bounded >= smallest_normal, 1);
  std::int32_t code = (bounded + ((1 << (dropped - 1)) - 1) + last - rebias) >> dropped;
  if constexpr (rebias != 0) {
    // The float whose last bit counts units of the format's subnormal numbers.
    constexpr std::int32_t ruler = power_bits(1 - format.bias - format.mantissa_bits + 23);
    const auto in_place = std::bit_cast<std::int32_t>(std::bit_cast<float>(bounded) + std::bit_cast<float>(ruler));
    code = choose(bounded < smallest_normal, in_place - ruler, code);
  }
  const auto sign = static_cast<std::int32_t>(bits >> (32 - format.total_bits())) & sign_bit;
  const bool is_nan = magnitude > float_infinity;
  if constexpr (format.specials == Specials::ieee) {
    code = choose(is_nan, static_cast<std::int32_t>(format.nan(false)), code) | sign;
  } else if constexpr (format.specials == Specials::nan_only) {
    code = choose(code < sign_bit - 1, code, sign_bit - 1) | sign;
  } else if constexpr (format.specials == Specials::unsigned_zero) {
    code = choose(code < sign_bit, code, sign_bit);
    code |= where(code != 0, sign);
  } else {
    static_assert(format.specials == Specials::exponent_only, "every code of the others is a number");
    const bool has_power = static_cast<std::int32_t>(bits) > 0;
    code = choose(has_power && code < sign_bit - 1, code, sign_bit - 1);
  }
  return To{static_cast<typename To::Bits>(code)};
}

}  // namespace ferry::inline FERRY_LEVEL
