// Small floating-point formats by integer arithmetic: exact to double, and back with exactly one rounding.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "core/dtype.hpp"

namespace ferry {

// What the topmost codes stand for.
enum class Specials : std::uint8_t {
  ieee,           // the largest exponent holds infinity and NaN
  nan_only,       // "fn": the largest code of either sign is NaN, no infinity
  unsigned_zero,  // "fnuz": the code of -0 is the one NaN, no infinity
  finite,         // every code is a number
  exponent_only,  // "e8m0fnu": powers of two, no sign, no zero; the largest code is NaN
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;

  [[nodiscard]] constexpr int total_bits() const noexcept {
    return exponent_bits + mantissa_bits + (specials == Specials::exponent_only ? 0 : 1);
  }

  // For an exponent-only format: one beyond the largest code.
  [[nodiscard]] constexpr std::uint32_t sign_bit() const noexcept { return 1U << (exponent_bits + mantissa_bits); }

  [[nodiscard]] constexpr std::uint32_t infinity() const noexcept {
    return ((1U << exponent_bits) - 1U) << mantissa_bits;
  }

  [[nodiscard]] constexpr std::uint32_t largest_finite() const noexcept {
    switch (specials) {
      case Specials::ieee:
        return infinity() - 1U;
      case Specials::nan_only:
      case Specials::exponent_only:
        return sign_bit() - 2U;
      default:
        return sign_bit() - 1U;
    }
  }

  // The code ml_dtypes gives to NaN; where a format has none, that is a zero of the opposite sign.
  [[nodiscard]] constexpr std::uint32_t nan(bool negative) const noexcept {
    const std::uint32_t sign = negative ? sign_bit() : 0U;
    switch (specials) {
      case Specials::ieee:
        return sign | infinity() | (1U << (mantissa_bits - 1));
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

  [[nodiscard]] constexpr std::uint32_t overflow(bool negative) const noexcept {
    const std::uint32_t sign = negative ? sign_bit() : 0U;
    switch (specials) {
      case Specials::ieee:
        return sign | infinity();
      case Specials::finite:
        return sign | largest_finite();
      default:
        return nan(negative);
    }
  }
};

// The format of a floating dtype of at most 16 bits (for complex32: of its parts).
[[nodiscard]] constexpr FloatFormat float_format(DType dtype) noexcept {
  switch (dtype) {
    case DType::bfloat16:
      return {8, 7, 127, Specials::ieee};
    case DType::float8_e3m4:
      return {3, 4, 3, Specials::ieee};
    case DType::float8_e4m3:
      return {4, 3, 7, Specials::ieee};
    case DType::float8_e4m3b11fnuz:
      return {4, 3, 11, Specials::unsigned_zero};
    case DType::float8_e4m3fn:
      return {4, 3, 7, Specials::nan_only};
    case DType::float8_e4m3fnuz:
      return {4, 3, 8, Specials::unsigned_zero};
    case DType::float8_e5m2:
      return {5, 2, 15, Specials::ieee};
    case DType::float8_e5m2fnuz:
      return {5, 2, 16, Specials::unsigned_zero};
    case DType::float8_e8m0fnu:
      return {8, 0, 127, Specials::exponent_only};
    case DType::float6_e2m3fn:
      return {2, 3, 1, Specials::finite};
    case DType::float6_e3m2fn:
      return {3, 2, 3, Specials::finite};
    case DType::float4_e2m1fn:
    case DType::float4_e2m1fn_x2:
      return {2, 1, 1, Specials::finite};
    default:
      return {5, 10, 15, Specials::ieee};
  }
}

inline constexpr int double_mantissa_bits = 52;
inline constexpr int double_bias = 1023;

[[nodiscard]] constexpr bool is_nan_code(FloatFormat format, std::uint32_t code) noexcept {
  const std::uint32_t magnitude = code & (format.sign_bit() - 1U);
  switch (format.specials) {
    case Specials::ieee:
      return magnitude > format.infinity();
    case Specials::nan_only:
    case Specials::exponent_only:
      return magnitude == format.sign_bit() - 1U;
    case Specials::unsigned_zero:
      return code == format.sign_bit();
    default:
      return false;
  }
}

// 2 to an exponent within the normal range of double.
[[nodiscard]] constexpr double power_of_two(int exponent) noexcept {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + double_bias) << double_mantissa_bits);
}

// Bits above the format's own are ignored.
[[nodiscard]] constexpr double decode(FloatFormat format, std::uint32_t code) noexcept {
  const bool has_sign = format.specials != Specials::exponent_only;
  code &= has_sign ? 2U * format.sign_bit() - 1U : format.sign_bit() - 1U;
  const bool negative = (code & format.sign_bit()) != 0U;
  const std::uint32_t magnitude = code & (format.sign_bit() - 1U);
  const std::uint32_t exponent = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1U);

  double value = 0.0;
  if (is_nan_code(format, code)) {
    value = std::numeric_limits<double>::quiet_NaN();
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | (static_cast<std::uint64_t>(negative) << 63U));
  }
  if (format.specials == Specials::ieee && magnitude == format.infinity()) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0U && has_sign) {
    value = static_cast<double>(mantissa) * power_of_two(1 - format.bias - format.mantissa_bits);
  } else {
    const auto biased = static_cast<std::uint64_t>(static_cast<int>(exponent) - format.bias + double_bias);
    value =
        std::bit_cast<double>((biased << double_mantissa_bits) |
                              (static_cast<std::uint64_t>(mantissa) << (double_mantissa_bits - format.mantissa_bits)));
  }
  return negative ? -value : value;
}

// Rounds to nearest, ties to even. A value that double itself could not hold must come rounded to odd (exact.hpp).
[[nodiscard]] constexpr std::uint32_t encode(FloatFormat format, double value) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = (bits >> 63U) != 0U;
  const auto biased = static_cast<int>((bits >> double_mantissa_bits) & 0x7FFU);
  const std::uint64_t fraction = bits & ((1ULL << double_mantissa_bits) - 1U);
  if (biased == 0x7FF) return fraction != 0U ? format.nan(negative) : format.overflow(negative);

  // As in ml_dtypes and torch, code 0 of an exponent-only format stands for 2^-bias but rounds as if it were zero.
  if (format.specials == Specials::exponent_only && (negative || value == 0.0)) return format.nan(negative);

  // A subnormal double lies far below half of every format's smallest number.
  const std::uint64_t significand = biased == 0 ? 0U : fraction | (1ULL << double_mantissa_bits);
  const int exponent = biased - double_bias;
  const int smallest_normal = 1 - format.bias;
  int dropped = double_mantissa_bits - format.mantissa_bits;
  if (exponent < smallest_normal) dropped += smallest_normal - exponent;
  if (dropped > double_mantissa_bits + 2) dropped = double_mantissa_bits + 2;

  const std::uint64_t rest = significand & ((1ULL << dropped) - 1U);
  const std::uint64_t half = 1ULL << (dropped - 1);
  std::uint64_t kept = significand >> dropped;
  if (rest > half || (rest == half && (kept & 1U) != 0U)) ++kept;

  // A carry out of the mantissa moves into the exponent by itself.
  std::uint64_t code = kept;
  if (exponent > smallest_normal) {
    code += static_cast<std::uint64_t>(exponent - smallest_normal) << format.mantissa_bits;
  }
  if (code > format.largest_finite()) return format.overflow(negative);
  if (code == 0U && format.specials == Specials::unsigned_zero) return 0U;
  return static_cast<std::uint32_t>(code) | (negative ? format.sign_bit() : 0U);
}

}  // namespace ferry
