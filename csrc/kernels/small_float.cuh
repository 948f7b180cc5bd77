// Floating-point formats of at most 16 bits by integer arithmetic; the results of host/float_format.hpp, bit for bit.
#pragma once

#include "kernels/element_type.hpp"
#include "kernels/memory.cuh"

namespace ferry::gpu {

enum class Specials : std::uint8_t { ieee, nan_only, unsigned_zero, finite, exponent_only };

struct Format {
  std::uint32_t exponent_bits;
  std::uint32_t mantissa_bits;
  std::int32_t bias;
  Specials specials;

  // Of an exponent-only format: one beyond the largest code.
  FERRY_DEVICE std::uint32_t sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
  FERRY_DEVICE std::uint32_t infinity() const { return ((1U << exponent_bits) - 1U) << mantissa_bits; }
  FERRY_DEVICE std::uint32_t largest() const {
    if (specials == Specials::ieee) return infinity() - 1U;
    return sign_bit() - (specials == Specials::nan_only || specials == Specials::exponent_only ? 2U : 1U);
  }
  FERRY_DEVICE std::uint32_t nan(bool negative) const {
    const std::uint32_t sign = negative ? sign_bit() : 0U;
    switch (specials) {
      case Specials::ieee:
        return sign | infinity() | (1U << (mantissa_bits - 1U));
      case Specials::nan_only:
        return sign | (sign_bit() - 1U);
      case Specials::exponent_only:
        return sign_bit() - 1U;
      case Specials::finite:
        return negative ? 0U : sign_bit();
      default:
        return sign_bit();
    }
  }
  FERRY_DEVICE std::uint32_t overflow(bool negative) const {
    const std::uint32_t sign = negative ? sign_bit() : 0U;
    if (specials == Specials::ieee) return sign | infinity();
    return specials == Specials::finite ? sign | largest() : nan(negative);
  }
};

// For complex32: of its parts.
FERRY_DEVICE Format format_of(ElementType type) {
  switch (type) {
    case ElementType::bfloat16:
      return {8, 7, 127, Specials::ieee};
    case ElementType::float8_e3m4:
      return {3, 4, 3, Specials::ieee};
    case ElementType::float8_e4m3:
      return {4, 3, 7, Specials::ieee};
    case ElementType::float8_e4m3b11fnuz:
      return {4, 3, 11, Specials::unsigned_zero};
    case ElementType::float8_e4m3fn:
      return {4, 3, 7, Specials::nan_only};
    case ElementType::float8_e4m3fnuz:
      return {4, 3, 8, Specials::unsigned_zero};
    case ElementType::float8_e5m2:
      return {5, 2, 15, Specials::ieee};
    case ElementType::float8_e5m2fnuz:
      return {5, 2, 16, Specials::unsigned_zero};
    case ElementType::float8_e8m0fnu:
      return {8, 0, 127, Specials::exponent_only};
    case ElementType::float6_e2m3fn:
      return {2, 3, 1, Specials::finite};
    case ElementType::float6_e3m2fn:
      return {3, 2, 3, Specials::finite};
    case ElementType::float4_e2m1fn:
      return {2, 1, 1, Specials::finite};
    default:
      return {5, 10, 15, Specials::ieee};
  }
}

inline constexpr std::uint64_t double_sign = 0x8000'0000'0000'0000U;
inline constexpr std::uint64_t double_infinity = 0x7FF0'0000'0000'0000U;
inline constexpr std::uint64_t double_nan = 0x7FF8'0000'0000'0000U;

FERRY_DEVICE double power_of_two(std::int32_t exponent) {
  return bits_as<double>(static_cast<std::uint64_t>(exponent + 1023) << 52U);
}

FERRY_DEVICE double decode(Format format, std::uint32_t code) {
  const std::uint32_t sign_bit = format.sign_bit();
  const bool has_sign = format.specials != Specials::exponent_only;
  const bool negative = has_sign && (code & sign_bit) != 0U;
  const std::uint32_t magnitude = code & (sign_bit - 1U);
  const std::uint32_t exponent = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1U);
  bool is_nan = false;
  if (format.specials == Specials::ieee) is_nan = magnitude > format.infinity();
  if (format.specials == Specials::nan_only || !has_sign) is_nan = magnitude == sign_bit - 1U;
  if (format.specials == Specials::unsigned_zero) is_nan = negative && magnitude == 0U;

  std::uint64_t bits;
  if (is_nan) {
    bits = double_nan;
  } else if (format.specials == Specials::ieee && magnitude == format.infinity()) {
    bits = double_infinity;
  } else if (exponent == 0U && has_sign) {
    const double unit = power_of_two(1 - format.bias - static_cast<std::int32_t>(format.mantissa_bits));
    bits = bits_as<std::uint64_t>(static_cast<double>(mantissa) * unit);
  } else {
    bits = static_cast<std::uint64_t>(static_cast<std::int32_t>(exponent) - format.bias + 1023) << 52U |
           static_cast<std::uint64_t>(mantissa) << (52U - format.mantissa_bits);
  }
  return bits_as<double>(bits | (negative ? double_sign : 0U));
}

// To nearest, ties to even. What double itself could not hold must come rounded to odd.
FERRY_DEVICE std::uint32_t encode(Format format, double value) {
  const auto bits = bits_as<std::uint64_t>(value);
  const bool negative = (bits & double_sign) != 0U;
  const auto biased = static_cast<std::int32_t>((bits >> 52U) & 0x7FFU);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52U) - 1U);
  if (biased == 0x7FF) return fraction != 0U ? format.nan(negative) : format.overflow(negative);
  if (format.specials == Specials::exponent_only && (negative || value == 0.0)) return format.nan(negative);

  const std::uint64_t significand = biased == 0 ? 0U : fraction | (std::uint64_t{1} << 52U);
  const std::int32_t exponent = biased - 1023;
  const std::int32_t smallest_normal = 1 - format.bias;
  std::int32_t dropped = 52 - static_cast<std::int32_t>(format.mantissa_bits);
  if (exponent < smallest_normal) dropped += smallest_normal - exponent;
  if (dropped > 54) dropped = 54;

  const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1U);
  const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  std::uint64_t code = significand >> dropped;
  if (rest > half || (rest == half && (code & 1U) != 0U)) ++code;
  if (exponent > smallest_normal)
    code += static_cast<std::uint64_t>(exponent - smallest_normal) << format.mantissa_bits;
  if (code > format.largest()) return format.overflow(negative);
  if (code == 0U && format.specials == Specials::unsigned_zero) return 0U;
  return static_cast<std::uint32_t>(code) | (negative ? format.sign_bit() : 0U);
}

}  // namespace ferry::gpu
