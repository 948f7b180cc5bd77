// From and to complex dtypes. A complex number begins with its real part: a row of real parts is one with a wide step.
#include <array>

#include "host/kernels/through_float.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <Convert convert>
void convert_parts(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  convert(to, from, 2 * count);
}

template <class To, class From, Convert convert = convert_items<To, From>>
inline constexpr MoveRow parts_row = cast_items<convert_parts<convert>, 2 * size_of<To>, 2 * size_of<From>>;

// Through complex64, as in through_float.hpp.
template <class To, class From, Convert second, Convert first>
inline constexpr MoveRow parts_through_float =
    cast_through<std::array<To, 2>, std::array<float, 2>, std::array<From, 2>, convert_parts<second>,
                 convert_parts<first>>;

// To complex numbers with parts of type Part.
template <class Part, class From>
[[gnu::noinline]] void convert_with_zeros(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    put(to + 2 * i * size_of<Part>, convert_value<Part>(get<From>(from + i * size_of<From>)));
    put(to + (2 * i + 1) * size_of<Part>, Part{});
  }
}

template <class Part, class From>
inline constexpr MoveRow row_with_zeros = cast_items<convert_with_zeros<Part, From>, 2 * size_of<Part>, size_of<From>>;

template <class Part, class Middle, class From, Convert first>
inline constexpr MoveRow row_with_zeros_through =
    cast_through<std::array<Part, 2>, Middle, From, convert_with_zeros<Part, Middle>, first>;

template <class Part>
bool is_zero(Part part) noexcept {
  if constexpr (std::is_same_v<Part, Float16>)
    return (part.bits & 0x7FFFU) == 0;
  else
    return part == Part{0};
}

template <class Part>
void convert_to_boolean(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool real = !is_zero(get<Part>(from + 2 * i * size_of<Part>));
    const bool imaginary = !is_zero(get<Part>(from + (2 * i + 1) * size_of<Part>));
    put(to + i, static_cast<std::uint8_t>(real | imaginary));
  }
}

template <class Part>
inline constexpr MoveRow boolean_row = cast_items<convert_to_boolean<Part>, 1, 2 * size_of<Part>>;

MoveRow to_complex32(DType from) noexcept {
  if (from == DType::complex64) return parts_row<Float16, float, narrow_halves>;
  if (from == DType::complex128) {
    return parts_through_float<Float16, double, narrow_halves, convert_to_odd<double>>;
  }
  return with_real(from, []<class From>(std::type_identity<From>) -> MoveRow {
    return row_with_zeros_through<Float16, float, From, to_odd_float_items<From>()>;
  });
}

MoveRow to_complex64(DType from) noexcept {
  if (from == DType::complex32) return parts_row<float, Float16, widen_halves>;
  if (from == DType::complex128) return parts_row<float, double>;
  return with_real(from, []<class From>(std::type_identity<From>) -> MoveRow {
    if constexpr (std::is_floating_point_v<From>) {
      return row_with_zeros<float, From>;
    } else {
      return row_with_zeros_through<float, float, From, widen_items<From>>;
    }
  });
}

MoveRow to_complex128(DType from) noexcept {
  if (from == DType::complex32) {
    return parts_through_float<double, Float16, convert_items<double, float>, widen_halves>;
  }
  if (from == DType::complex64) return parts_row<double, float>;
  return with_real(from, []<class From>(std::type_identity<From>) -> MoveRow {
    if constexpr (std::is_floating_point_v<From>) {
      return row_with_zeros<double, From>;
    } else if constexpr (SmallFloatBits<From>) {
      return row_with_zeros_through<double, float, From, widen_items<From>>;
    } else {
      return row_with_zeros_through<double, double, From, convert_items<double, From>>;
    }
  });
}

MoveRow to_boolean(DType from) noexcept {
  switch (from) {
    case DType::complex32:
      return boolean_row<Float16>;
    case DType::complex64:
      return boolean_row<float>;
    case DType::complex128:
      return boolean_row<double>;
    default:
      return nullptr;
  }
}

// Its own part, too, goes through what makes a NaN a plain one.
MoveRow real_row(DType to, DType from) noexcept {
  if (to == from && to == DType::float32) return row_between<float, float>;
  if (to == from && to == DType::float64) return row_between<double, double>;
  for (const auto family : {cast_to_floats, cast_from_floats, cast_to_small, cast_from_small}) {
    if (const MoveRow row = family(to, from); row != nullptr) return row;
  }
  return nullptr;
}

}  // namespace

MoveRow cast_complex(DType to, DType from) noexcept {
  switch (to) {
    case DType::complex32:
      return to_complex32(from);
    case DType::complex64:
      return to_complex64(from);
    case DType::complex128:
      return to_complex128(from);
    case DType::bool_:
      return to_boolean(from);
    default:
      break;
  }
  switch (from) {
    case DType::complex32:
      return real_row(to, DType::float16);
    case DType::complex64:
      return real_row(to, DType::float32);
    case DType::complex128:
      return real_row(to, DType::float64);
    default:
      return nullptr;
  }
}

}  // namespace ferry::inline FERRY_LEVEL
