// Conversions and comparisons between 64-bit integers and double that lose nothing by accident.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>

#include "host/kernels/level.hpp"

namespace ferry::inline FERRY_LEVEL {

inline constexpr double two_to_63 = 9223372036854775808.0;
inline constexpr double two_to_64 = 18446744073709551616.0;

// Rounds to odd: a later rounding to 50 bits or fewer then gives what one rounding of the integer would have given.
[[nodiscard]] inline double to_double_odd(std::uint64_t value) noexcept {
  const int excess = static_cast<int>(std::bit_width(value)) - std::numeric_limits<double>::digits;
  if (excess <= 0) return static_cast<double>(value);
  const std::uint64_t lost = value & ((std::uint64_t{1} << excess) - 1U);
  const std::uint64_t kept = (value >> excess) | static_cast<std::uint64_t>(lost != 0U);
  return static_cast<double>(kept << excess);
}

[[nodiscard]] inline double to_double_odd(std::int64_t value) noexcept {
  const auto bits = static_cast<std::uint64_t>(value);
  return value < 0 ? -to_double_odd(std::uint64_t{0} - bits) : to_double_odd(bits);
}

// Closed range of integers; empty when low > high.
template <class Int>
struct IntegerRange {
  Int low;
  Int high;

  [[nodiscard]] bool contains(Int value) const noexcept { return low <= value && value <= high; }
};

// The integers v with low <= v <= high.
template <class Int>
[[nodiscard]] IntegerRange<Int> integers_between(double low, double high) noexcept {
  using Limits = std::numeric_limits<Int>;
  constexpr double smallest = Limits::is_signed ? -two_to_63 : 0.0;
  constexpr double beyond = Limits::is_signed ? two_to_63 : two_to_64;
  const double first = std::ceil(low);
  const double last = std::floor(high);
  if (!(first < beyond) || !(last >= smallest)) return {1, 0};  // also for NaN
  return {first <= smallest ? Limits::min() : static_cast<Int>(first),
          last >= beyond ? Limits::max() : static_cast<Int>(last)};
}

// Truncates toward zero, saturates at the ends of the range, NaN becomes 0. `beyond` is range.high + 1.
template <class Int>
[[nodiscard]] Int to_integer(double value, IntegerRange<Int> range, double beyond) noexcept {
  if (value >= beyond) return range.high;
  if (value <= static_cast<double>(range.low)) return range.low;
  return value == value ? static_cast<Int>(value) : Int{0};
}

// Are both the same number? NaN is the same as NaN, and +0 the same as -0.
[[nodiscard]] inline bool same_value(double a, double b) noexcept { return a == b || (a != a && b != b); }
[[nodiscard]] inline bool same_value(std::int64_t a, std::int64_t b) noexcept { return a == b; }
[[nodiscard]] inline bool same_value(std::uint64_t a, std::uint64_t b) noexcept { return a == b; }
[[nodiscard]] inline bool same_value(std::int64_t a, std::uint64_t b) noexcept { return std::cmp_equal(a, b); }
[[nodiscard]] inline bool same_value(std::uint64_t a, std::int64_t b) noexcept { return std::cmp_equal(a, b); }
[[nodiscard]] inline bool same_value(std::int64_t a, double b) noexcept {
  return b >= -two_to_63 && b < two_to_63 && static_cast<std::int64_t>(b) == a && std::trunc(b) == b;
}
[[nodiscard]] inline bool same_value(std::uint64_t a, double b) noexcept {
  return b >= 0.0 && b < two_to_64 && static_cast<std::uint64_t>(b) == a && std::trunc(b) == b;
}
template <std::integral Int>
[[nodiscard]] bool same_value(double a, Int b) noexcept {
  return same_value(b, a);
}

template <class T>
concept RealCarrier = std::integral<T> || std::floating_point<T>;

[[nodiscard]] inline bool same_value(std::complex<double> a, std::complex<double> b) noexcept {
  return same_value(a.real(), b.real()) && same_value(a.imag(), b.imag());
}
template <RealCarrier Real>
[[nodiscard]] bool same_value(std::complex<double> a, Real b) noexcept {
  return a.imag() == 0.0 && same_value(a.real(), b);
}
template <RealCarrier Real>
[[nodiscard]] bool same_value(Real a, std::complex<double> b) noexcept {
  return same_value(b, a);
}

}  // namespace ferry::inline FERRY_LEVEL
