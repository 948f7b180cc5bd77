// From a conversion of one value to a loop over rows of any steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "host/kernels/cast_value.hpp"
#include "host/kernels/families.hpp"

namespace ferry::inline FERRY_LEVEL {

// From packed items to packed items.
using Convert = void (*)(std::byte* to, const std::byte* from, std::int64_t count) noexcept;

template <class T>
inline T get(const std::byte* at) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return *at != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, at, sizeof(T));
    return value;
  }
}

template <class T>
inline void put(std::byte* at, T value) noexcept {
  std::memcpy(at, &value, sizeof(T));
}

template <class T>
inline constexpr auto size_of = static_cast<std::int64_t>(sizeof(T));

// Not inlined: every row and every pair of steps that contains it would hold a copy of its vector code.
template <class To, class From>
[[gnu::noinline]] void convert_items(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    put(to + i * size_of<To>, convert_value<To>(get<From>(from + i * size_of<From>)));
  }
}

// One conversion, or a second one of what the first makes.
struct CastSteps {
  Convert first;
  Convert second;  // or null
  std::int64_t to_size;
  std::int64_t middle_size;
  std::int64_t from_size;
};

// Gathers, converts and scatters, a little at a time.
void cast_in_steps(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                   std::int64_t count, const CastSteps& steps) noexcept;

template <Convert convert, std::int64_t to_size, std::int64_t from_size>
inline constexpr CastSteps one_step{convert, nullptr, to_size, 0, from_size};

template <Convert convert, std::int64_t to_size, std::int64_t from_size>
void cast_items(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                std::int64_t count) noexcept {
  if (to_step == to_size && from_step == from_size) return convert(to, from, count);
  cast_in_steps(to, to_step, from, from_step, count, one_step<convert, to_size, from_size>);
}

template <class To, class From>
inline constexpr MoveRow row_between = cast_items<convert_items<To, From>, size_of<To>, size_of<From>>;

template <class To, class Middle, class From, Convert second, Convert first>
inline constexpr CastSteps two_steps{first, second, size_of<To>, size_of<Middle>, size_of<From>};

template <class To, class Middle, class From, Convert second = convert_items<To, Middle>,
          Convert first = convert_items<Middle, From>>
void cast_through(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                  std::int64_t count) noexcept {
  cast_in_steps(to, to_step, from, from_step, count, two_steps<To, Middle, From, second, first>);
}

// The families. Each gives null for a pair that is not its own.
[[nodiscard]] MoveRow cast_integers(DType to, DType from) noexcept;     // and bool, among themselves
[[nodiscard]] MoveRow cast_to_floats(DType to, DType from) noexcept;    // float32 and float64, from ordinary types
[[nodiscard]] MoveRow cast_from_floats(DType to, DType from) noexcept;  // to bool and integers
[[nodiscard]] MoveRow cast_to_small(DType to, DType from) noexcept;     // from all real ones
[[nodiscard]] MoveRow cast_from_small(DType to, DType from) noexcept;   // to bool, integers, float32 and float64
[[nodiscard]] MoveRow cast_complex(DType to, DType from) noexcept;      // at either end

// Calls `visit` with the type of a dtype of bool or integers; null for other dtypes.
template <class Visit>
MoveRow with_integer(DType dtype, Visit&& visit) noexcept {
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
    default:
      return nullptr;
  }
}

// Calls `visit` with the type of a small floating-point format; null for other dtypes.
template <class Visit>
MoveRow with_small(DType dtype, Visit&& visit) noexcept {
  switch (dtype) {
    case DType::float16:
      return visit(std::type_identity<Float16>{});
    case DType::bfloat16:
      return visit(std::type_identity<BFloat16>{});
    case DType::float8_e3m4:
      return visit(std::type_identity<SmallFloat<DType::float8_e3m4>>{});
    case DType::float8_e4m3:
      return visit(std::type_identity<SmallFloat<DType::float8_e4m3>>{});
    case DType::float8_e4m3b11fnuz:
      return visit(std::type_identity<SmallFloat<DType::float8_e4m3b11fnuz>>{});
    case DType::float8_e4m3fn:
      return visit(std::type_identity<SmallFloat<DType::float8_e4m3fn>>{});
    case DType::float8_e4m3fnuz:
      return visit(std::type_identity<SmallFloat<DType::float8_e4m3fnuz>>{});
    case DType::float8_e5m2:
      return visit(std::type_identity<SmallFloat<DType::float8_e5m2>>{});
    case DType::float8_e5m2fnuz:
      return visit(std::type_identity<SmallFloat<DType::float8_e5m2fnuz>>{});
    case DType::float8_e8m0fnu:
      return visit(std::type_identity<SmallFloat<DType::float8_e8m0fnu>>{});
    default:
      return nullptr;
  }
}

}  // namespace ferry::inline FERRY_LEVEL
