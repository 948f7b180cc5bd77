// Choices without branches.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "host/kernels/level.hpp"

namespace ferry::inline FERRY_LEVEL {

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

}  // namespace ferry::inline FERRY_LEVEL
