// The element types of casts, under the numbers of core/dtype.hpp, which kernels do not see.
#pragma once

#include <cstdint>

#include "kernels/both.hpp"

// In the order of FERRY_DTYPES; cuda/kernels.cpp compares. X(name, itemsize, alignment)
#define FERRY_ELEMENT_TYPES(X) \
  X(bool_, 1, 1)               \
  X(uint8, 1, 1)               \
  X(uint16, 2, 2)              \
  X(uint32, 4, 4)              \
  X(uint64, 8, 8)              \
  X(int8, 1, 1)                \
  X(int16, 2, 2)               \
  X(int32, 4, 4)               \
  X(int64, 8, 8)               \
  X(float16, 2, 2)             \
  X(float32, 4, 4)             \
  X(float64, 8, 8)             \
  X(complex64, 8, 4)           \
  X(complex128, 16, 8)         \
  X(bfloat16, 2, 2)            \
  X(float8_e3m4, 1, 1)         \
  X(float8_e4m3, 1, 1)         \
  X(float8_e4m3b11fnuz, 1, 1)  \
  X(float8_e4m3fn, 1, 1)       \
  X(float8_e4m3fnuz, 1, 1)     \
  X(float8_e5m2, 1, 1)         \
  X(float8_e5m2fnuz, 1, 1)     \
  X(float8_e8m0fnu, 1, 1)      \
  X(float6_e2m3fn, 1, 1)       \
  X(float6_e3m2fn, 1, 1)       \
  X(float4_e2m1fn, 1, 1)       \
  X(float4_e2m1fn_x2, 1, 1)    \
  X(complex32, 4, 2)           \
  X(int1, 1, 1)                \
  X(int2, 1, 1)                \
  X(int4, 1, 1)                \
  X(uint1, 1, 1)               \
  X(uint2, 1, 1)               \
  X(uint4, 1, 1)

namespace ferry::gpu {

enum class ElementType : std::uint8_t {
#define X(name, itemsize, alignment) name,
  FERRY_ELEMENT_TYPES(X)
#undef X
};

FERRY_BOTH constexpr std::uint32_t itemsize(ElementType type) noexcept {
  switch (type) {
#define X(name, size, alignment) \
  case ElementType::name:        \
    return size;
    FERRY_ELEMENT_TYPES(X)
#undef X
  }
  return 0;
}

// Bytes that divide every address of an element that a cast touches.
constexpr std::uint32_t element_alignment(ElementType type) noexcept {
  switch (type) {
#define X(name, size, alignment) \
  case ElementType::name:        \
    return alignment;
    FERRY_ELEMENT_TYPES(X)
#undef X
  }
  return 0;
}

// Can kernels convert from and to it? Packed pairs have no address of their own.
constexpr bool casts(ElementType type) noexcept { return type != ElementType::float4_e2m1fn_x2; }

// What a cast is told: the two types. `no_cast` moves bits.
struct Cast {
  std::uint8_t to;
  std::uint8_t from;

  FERRY_BOTH friend constexpr bool operator==(const Cast& a, const Cast& b) noexcept {
    return a.to == b.to && a.from == b.from;
  }
};
constexpr Cast cast_between(ElementType to, ElementType from) noexcept {
  return {static_cast<std::uint8_t>(to), static_cast<std::uint8_t>(from)};
}
inline constexpr Cast no_cast{0xFF, 0xFF};
FERRY_BOTH constexpr bool is_cast(Cast cast) noexcept { return cast.to != 0xFF; }

}  // namespace ferry::gpu
