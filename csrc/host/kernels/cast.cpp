#include "host/direct_row.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "host/direct_value.hpp"

namespace ferry {
namespace {

template <class T>
T get(const std::byte* at) noexcept {
  if constexpr (std::is_same_v<T, bool>) return *at != std::byte{0};
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void put(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof(T));
}

template <class T>
using Contiguous = std::integral_constant<std::int64_t, static_cast<std::int64_t>(sizeof(T))>;

// A step is a number or, for loops that vectorise, an integral constant.
template <class To, class From, class ToStep, class FromStep>
void convert_items(std::byte* to, ToStep to_step, const std::byte* from, FromStep from_step,
                   std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    put(to + i * to_step, convert_value<To>(get<From>(from + i * from_step)));
  }
}

template <class To, class From>
void convert_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                 std::int64_t count) noexcept {
  if (to_step == Contiguous<To>::value && from_step == Contiguous<From>::value) {
    convert_items<To, From>(to, Contiguous<To>{}, from, Contiguous<From>{}, count);
  } else {
    convert_items<To, From>(to, to_step, from, from_step, count);
  }
}

// Between complex dtypes with parts of these types.
template <class To, class From>
void convert_complex_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                         std::int64_t count) noexcept {
  if (to_step == 2 * Contiguous<To>::value && from_step == 2 * Contiguous<From>::value) {
    convert_items<To, From>(to, Contiguous<To>{}, from, Contiguous<From>{}, 2 * count);
  } else {
    convert_items<To, From>(to, to_step, from, from_step, count);
    convert_items<To, From>(to + sizeof(To), to_step, from + sizeof(From), from_step, count);
  }
}

// To a complex dtype with parts of type To.
template <class To, class From, class ToStep, class FromStep>
void widen_items(std::byte* to, ToStep to_step, const std::byte* from, FromStep from_step,
                 std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    put(to + i * to_step, convert_value<To>(get<From>(from + i * from_step)));
    put(to + i * to_step + sizeof(To), To{0});
  }
}

template <class To, class From>
void widen_to_complex_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                          std::int64_t count) noexcept {
  if (to_step == 2 * Contiguous<To>::value && from_step == Contiguous<From>::value) {
    widen_items<To, From>(to, std::integral_constant<std::int64_t, 2 * Contiguous<To>::value>{}, from,
                          Contiguous<From>{}, count);
  } else {
    widen_items<To, From>(to, to_step, from, from_step, count);
  }
}

template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The small floats go to and come from other floats only, and double would round twice on its way to them.
template <class To, class From>
inline constexpr bool is_paired = (!SmallFloatBits<From> || !std::is_integral_v<To>) &&
                                  (!SmallFloatBits<To> || std::is_same_v<From, float> || SmallFloatBits<From>);

template <class To, class From>
constexpr DirectRow row_between() noexcept {
  if constexpr (std::is_same_v<To, From> || !is_paired<To, From>) {
    return nullptr;
  } else if constexpr (is_integer<To> && is_integer<From>) {
    // Between integers a sign matters only to what it extends: the others share their code.
    using Source = std::conditional_t<(sizeof(To) > sizeof(From)), From, std::make_unsigned_t<From>>;
    return convert_row<std::make_unsigned_t<To>, Source>;
  } else {
    return convert_row<To, From>;
  }
}

// Calls `visit` with the type of a real dtype; null for the dtypes that have no direct rows.
template <class Visit>
DirectRow with_real(DType dtype, Visit&& visit) noexcept {
  switch (dtype) {
    case DType::bool_:
      return visit(std::type_identity<bool>{});
    case DType::uint8:
      return visit(std::type_identity<std::uint8_t>{});
    case DType::uint16:
      return visit(std::type_identity<std::uint16_t>{});
    case DType::uint32:
      return visit(std::type_identity<std::uint32_t>{});
    case DType::uint64:
      return visit(std::type_identity<std::uint64_t>{});
    case DType::int8:
      return visit(std::type_identity<std::int8_t>{});
    case DType::int16:
      return visit(std::type_identity<std::int16_t>{});
    case DType::int32:
      return visit(std::type_identity<std::int32_t>{});
    case DType::int64:
      return visit(std::type_identity<std::int64_t>{});
    case DType::float16:
      return visit(std::type_identity<Float16>{});
    case DType::bfloat16:
      return visit(std::type_identity<BFloat16>{});
    case DType::float32:
      return visit(std::type_identity<float>{});
    case DType::float64:
      return visit(std::type_identity<double>{});
    default:
      return nullptr;
  }
}

DirectRow real_row(DType to, DType from) noexcept {
  return with_real(to, [from]<class To>(std::type_identity<To>) {
    return with_real(from, []<class From>(std::type_identity<From>) { return row_between<To, From>(); });
  });
}

DirectRow to_complex_row(DType to, DType from) noexcept {
  const bool single = to == DType::complex64;
  switch (from) {
    case DType::float32:
      return single ? widen_to_complex_row<float, float> : widen_to_complex_row<double, float>;
    case DType::float64:
      return single ? widen_to_complex_row<float, double> : widen_to_complex_row<double, double>;
    case DType::complex64:
      return single ? nullptr : convert_complex_row<double, float>;
    case DType::complex128:
      return single ? convert_complex_row<float, double> : nullptr;
    default:
      return nullptr;
  }
}

// A complex number begins with its real part, and the step passes over the other one.
DirectRow from_complex_row(DType to, DType from) noexcept {
  const bool single = from == DType::complex64;
  const DType part = single ? DType::float32 : DType::float64;
  if (to == DType::bool_) return nullptr;  // which asks both parts
  if (to == part) return single ? convert_row<float, float> : convert_row<double, double>;
  return real_row(to, part);
}

bool is_complex(DType dtype) noexcept { return dtype == DType::complex64 || dtype == DType::complex128; }

}  // namespace

DirectRow direct_row(DType to, DType from) noexcept {
  if (is_complex(to)) return to_complex_row(to, from);
  if (is_complex(from)) return from_complex_row(to, from);
  return real_row(to, from);
}

}  // namespace ferry
