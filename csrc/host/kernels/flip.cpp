// Negates and conjugates by sign bits alone, so that a NaN keeps its payload.
#include "host/kernels/cast_loop.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <class Bits, bool even, bool odd>
[[gnu::noinline]] void flip_pairs(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  for (std::int64_t i = 0; i < 2 * count; i += 2) {
    const Bits first = get<Bits>(from + i * size_of<Bits>);
    const Bits second = get<Bits>(from + (i + 1) * size_of<Bits>);
    put(to + i * size_of<Bits>, static_cast<Bits>(first ^ (even ? sign : Bits{0})));
    put(to + (i + 1) * size_of<Bits>, static_cast<Bits>(second ^ (odd ? sign : Bits{0})));
  }
}

template <class Bits>
[[gnu::noinline]] void flip_all(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  constexpr Bits sign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  for (std::int64_t i = 0; i < count; ++i) {
    put(to + i * size_of<Bits>, static_cast<Bits>(get<Bits>(from + i * size_of<Bits>) ^ sign));
  }
}

template <class Bits>
inline constexpr MoveRow flip_real = cast_items<flip_all<Bits>, size_of<Bits>, size_of<Bits>>;

template <class Bits>
MoveRow flip_complex(bool real, bool imaginary) noexcept {
  constexpr std::int64_t size = 2 * size_of<Bits>;
  if (real && imaginary) return cast_items<flip_pairs<Bits, true, true>, size, size>;
  return real ? cast_items<flip_pairs<Bits, true, false>, size, size>
              : cast_items<flip_pairs<Bits, false, true>, size, size>;
}

}  // namespace

MoveRow flip_signs(DType dtype, bool conjugated, bool negated) noexcept {
  const bool imaginary = conjugated != negated;
  switch (dtype) {
    case DType::float8_e3m4:
    case DType::float8_e4m3:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return flip_real<std::uint8_t>;
    case DType::float16:
    case DType::bfloat16:
      return flip_real<std::uint16_t>;
    case DType::float32:
      return flip_real<std::uint32_t>;
    case DType::float64:
      return flip_real<std::uint64_t>;
    case DType::complex32:
      return flip_complex<std::uint16_t>(negated, imaginary);
    case DType::complex64:
      return flip_complex<std::uint32_t>(negated, imaginary);
    case DType::complex128:
      return flip_complex<std::uint64_t>(negated, imaginary);
    default:
      return nullptr;
  }
}

}  // namespace ferry::inline FERRY_LEVEL
