// Division by a number that is known before the launch: a multiplication and a shift. On a device, 64-bit division is a
// call of some hundred instructions.
#pragma once

#include <cstdint>

#include "kernels/both.hpp"

namespace ferry::gpu {

// Granlund and Montgomery, "Division by invariant integers using multiplication", 1994, figure 4.1: exact for
// 0 <= number < 2^31 and 1 <= divisor < 2^31.
struct Divisor {
  std::uint32_t divisor;
  std::uint32_t multiplier;
  std::uint32_t shift;

  FERRY_BOTH constexpr std::uint32_t quotient(std::uint32_t number) const {
    const auto high = static_cast<std::uint32_t>((static_cast<std::uint64_t>(number) * multiplier) >> 32U);
    return (high + number) >> shift;
  }
};

// The same for 0 <= number < 2^63 and 1 <= divisor < 2^63.
struct WideDivisor {
  std::uint64_t divisor;
  std::uint64_t multiplier;
  std::uint64_t shift;

  FERRY_BOTH constexpr std::uint64_t quotient(std::uint64_t number) const {
    return (high_product(number, multiplier) + number) >> shift;
  }

  // By halves: not every compiler has integers of 128 bits.
  FERRY_BOTH static constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t half = 0xFFFF'FFFFU;
    const std::uint64_t low = (a & half) * (b & half);
    const std::uint64_t cross = (a >> 32U) * (b & half) + (low >> 32U);
    const std::uint64_t other = (a & half) * (b >> 32U) + (cross & half);
    return (a >> 32U) * (b >> 32U) + (cross >> 32U) + (other >> 32U);
  }
};

constexpr Divisor divisor_of(std::uint32_t divisor) noexcept {
  std::uint32_t shift = 0;
  while ((std::uint64_t{1} << shift) < divisor) ++shift;
  const std::uint64_t excess = (std::uint64_t{1} << shift) - divisor;
  return {divisor, static_cast<std::uint32_t>((excess << 32U) / divisor + 1U), shift};
}

constexpr WideDivisor wide_divisor_of(std::uint64_t divisor) noexcept {
  std::uint64_t shift = 0;
  while ((std::uint64_t{1} << shift) < divisor) ++shift;
  // excess * 2^64 / divisor, bit by bit; excess is less than the divisor.
  std::uint64_t rest = (std::uint64_t{1} << shift) - divisor;
  std::uint64_t multiplier = 0;
  for (int bit = 0; bit < 64; ++bit) {
    rest <<= 1U;
    multiplier <<= 1U;
    if (rest < divisor) continue;
    rest -= divisor;
    multiplier |= 1U;
  }
  return {divisor, multiplier + 1U, shift};
}

}  // namespace ferry::gpu
