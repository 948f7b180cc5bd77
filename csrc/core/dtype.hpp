// The one table of element types. Everything that depends on a dtype reads it from here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ferry {

enum class Kind : std::uint8_t { boolean, unsigned_integer, signed_integer, floating, complex };

// X(name, kind, value_bits, itemsize, elements_per_item, dlpack_code, dlpack_bits, dlpack_lanes, numpy_native)
//
// `value_bits` is the width of one element's value, `itemsize` the bytes one stored item takes. Only the packed
// float4 stores more than one element in an item. `numpy_native` tells whether NumPy itself has the type; the others
// come from ml_dtypes (same name), except complex32 and float4_e2m1fn_x2, which have no NumPy form and are converted.
// The DLPack codes are those of DLDataTypeCode, DLPack 1.1.
#define FERRY_DTYPES(X)                                    \
  X(bool_, boolean, 1, 1, 1, 6, 8, 1, true)                \
  X(uint8, unsigned_integer, 8, 1, 1, 1, 8, 1, true)       \
  X(uint16, unsigned_integer, 16, 2, 1, 1, 16, 1, true)    \
  X(uint32, unsigned_integer, 32, 4, 1, 1, 32, 1, true)    \
  X(uint64, unsigned_integer, 64, 8, 1, 1, 64, 1, true)    \
  X(int8, signed_integer, 8, 1, 1, 0, 8, 1, true)          \
  X(int16, signed_integer, 16, 2, 1, 0, 16, 1, true)       \
  X(int32, signed_integer, 32, 4, 1, 0, 32, 1, true)       \
  X(int64, signed_integer, 64, 8, 1, 0, 64, 1, true)       \
  X(float16, floating, 16, 2, 1, 2, 16, 1, true)           \
  X(float32, floating, 32, 4, 1, 2, 32, 1, true)           \
  X(float64, floating, 64, 8, 1, 2, 64, 1, true)           \
  X(complex64, complex, 64, 8, 1, 5, 64, 1, true)          \
  X(complex128, complex, 128, 16, 1, 5, 128, 1, true)      \
  X(bfloat16, floating, 16, 2, 1, 4, 16, 1, false)         \
  X(float8_e3m4, floating, 8, 1, 1, 7, 8, 1, false)        \
  X(float8_e4m3, floating, 8, 1, 1, 8, 8, 1, false)        \
  X(float8_e4m3b11fnuz, floating, 8, 1, 1, 9, 8, 1, false) \
  X(float8_e4m3fn, floating, 8, 1, 1, 10, 8, 1, false)     \
  X(float8_e4m3fnuz, floating, 8, 1, 1, 11, 8, 1, false)   \
  X(float8_e5m2, floating, 8, 1, 1, 12, 8, 1, false)       \
  X(float8_e5m2fnuz, floating, 8, 1, 1, 13, 8, 1, false)   \
  X(float8_e8m0fnu, floating, 8, 1, 1, 14, 8, 1, false)    \
  X(float6_e2m3fn, floating, 6, 1, 1, 15, 6, 1, false)     \
  X(float6_e3m2fn, floating, 6, 1, 1, 16, 6, 1, false)     \
  X(float4_e2m1fn, floating, 4, 1, 1, 17, 4, 1, false)     \
  X(float4_e2m1fn_x2, floating, 4, 1, 2, 17, 4, 2, false)  \
  X(complex32, complex, 32, 4, 1, 5, 32, 1, false)         \
  X(int1, signed_integer, 1, 1, 1, 0, 1, 1, false)         \
  X(int2, signed_integer, 2, 1, 1, 0, 2, 1, false)         \
  X(int4, signed_integer, 4, 1, 1, 0, 4, 1, false)         \
  X(uint1, unsigned_integer, 1, 1, 1, 1, 1, 1, false)      \
  X(uint2, unsigned_integer, 2, 1, 1, 1, 2, 1, false)      \
  X(uint4, unsigned_integer, 4, 1, 1, 1, 4, 1, false)

enum class DType : std::uint8_t {
#define X(name, ...) name,
  FERRY_DTYPES(X)
#undef X
};

#define X(name, ...) +1
inline constexpr std::size_t dtype_count = 0 FERRY_DTYPES(X);
#undef X

struct DTypeInfo {
  std::string_view name;
  Kind kind;
  std::uint8_t value_bits;
  std::uint8_t itemsize;
  std::uint8_t elements_per_item;
  std::uint8_t dlpack_code;
  std::uint8_t dlpack_bits;
  std::uint8_t dlpack_lanes;
  bool numpy_native;
};

inline constexpr std::array<DTypeInfo, dtype_count> dtype_table{{
#define X(name, kind, value_bits, itemsize, per_item, code, bits, lanes, native)            \
  {std::string_view(#name) == "bool_" ? std::string_view("bool") : std::string_view(#name), \
   Kind::kind,                                                                              \
   value_bits,                                                                              \
   itemsize,                                                                                \
   per_item,                                                                                \
   code,                                                                                    \
   bits,                                                                                    \
   lanes,                                                                                   \
   native},
    FERRY_DTYPES(X)
#undef X
}};

[[nodiscard]] constexpr const DTypeInfo& info(DType dtype) noexcept {
  return dtype_table[static_cast<std::size_t>(dtype)];
}

// By the name NumPy and torch use ("bool" for DType::bool_).
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;

// Bytes that must divide an address for aligned access: a complex number aligns as its parts do.
[[nodiscard]] std::size_t alignment(DType dtype) noexcept;

// The unsigned integer of the same width (dtype="bits"); none for 16-byte items.
[[nodiscard]] std::optional<DType> bits_dtype(DType dtype) noexcept;

// The smallest NumPy-native dtype that holds every value (dtype="numpy").
[[nodiscard]] DType native_dtype(DType dtype) noexcept;

// What an array of this dtype holds when nothing is asked: the dtype itself, except for the two types that no NumPy
// package can hold (packed float4 unpacks, complex32 widens).
[[nodiscard]] constexpr DType array_dtype(DType dtype) noexcept {
  if (dtype == DType::float4_e2m1fn_x2) return DType::float4_e2m1fn;
  if (dtype == DType::complex32) return DType::complex64;
  return dtype;
}

}  // namespace ferry
