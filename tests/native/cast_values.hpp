// Values where conversions go wrong: the ends of ranges, ties of every rounding, and random bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "support.hpp"

namespace ferry::test {

using Bytes = std::vector<std::byte>;

// Those that have cast kernels.
inline constexpr DType cast_dtypes[] = {DType::bool_,
                                        DType::uint8,
                                        DType::uint16,
                                        DType::uint32,
                                        DType::uint64,
                                        DType::int8,
                                        DType::int16,
                                        DType::int32,
                                        DType::int64,
                                        DType::float16,
                                        DType::float32,
                                        DType::bfloat16,
                                        DType::float64,
                                        DType::complex32,
                                        DType::complex64,
                                        DType::complex128,
                                        DType::float8_e3m4,
                                        DType::float8_e4m3,
                                        DType::float8_e4m3b11fnuz,
                                        DType::float8_e4m3fn,
                                        DType::float8_e4m3fnuz,
                                        DType::float8_e5m2,
                                        DType::float8_e5m2fnuz,
                                        DType::float8_e8m0fnu};

template <class T>
inline void append(Bytes& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

// Both signs of a value and of its neighbours.
template <class Float>
inline void append_around(Bytes& bytes, Float value) {
  constexpr Float infinity = std::numeric_limits<Float>::infinity();
  for (const Float near : {value, std::nextafter(value, infinity), std::nextafter(value, Float{0})}) {
    append(bytes, near);
    append(bytes, -near);
  }
}

template <class Float, class Bits>
Bytes floats(Random& random) {
  using Limits = std::numeric_limits<Float>;
  Bytes bytes;
  for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent; ++exponent) {
    for (const double factor : {1.0, 1.5}) append_around(bytes, std::ldexp(static_cast<Float>(factor), exponent));
  }
  // 2^n - 1/2, 2^n + 1/2 and 2^n - 1 for the ends of integers; 2k and 2k + 1 units of 2^-25 for float16's subnormals.
  for (int exponent = 0; exponent <= 64; ++exponent) {
    const Float power = std::ldexp(Float{1}, exponent);
    for (const Float shift : {Float{-1}, Float{-0.5}, Float{0.5}, Float{1}}) append_around(bytes, power + shift);
  }
  for (int units = 0; units < 4100; ++units) append_around(bytes, std::ldexp(static_cast<Float>(units), -25));
  // The numbers of bfloat16 and float16 and what lies half way between two of them.
  for (std::uint32_t code = 0; code < 0x7F80U; ++code) {
    append_around(bytes, static_cast<Float>(std::bit_cast<float>((code << 16U) | 0x8000U)));
  }
  for (int exponent = -14; exponent < 16; ++exponent) {
    for (int mantissa = 2048; mantissa < 4096; ++mantissa) {
      append_around(bytes, std::ldexp(static_cast<Float>(mantissa), exponent - 11));
    }
  }
  for (const Float special : {Float{0}, Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::denorm_min()}) {
    append(bytes, special);
    append(bytes, -special);
  }
  for (int shift = 0; shift < Limits::digits - 1; ++shift) {
    const Bits quiet = std::bit_cast<Bits>(Limits::infinity()) | (Bits{1} << shift);
    append(bytes, quiet);
    append(bytes, std::bit_cast<Bits>(-Limits::infinity()) | quiet);
  }
  for (int i = 0; i < 100'000; ++i) append(bytes, static_cast<Bits>(random.bits()));
  return bytes;
}

inline Bytes integers(Random& random, std::int64_t itemsize) {
  Bytes bytes;
  const auto add = [&](std::uint64_t value) {
    if (itemsize == 4) append(bytes, static_cast<std::uint32_t>(value));
    if (itemsize == 8) append(bytes, value);
  };
  for (int shift = 0; shift < 64; ++shift) {
    const std::uint64_t power = std::uint64_t{1} << shift;
    for (int offset = -3; offset <= 3; ++offset) {
      add(power + static_cast<std::uint64_t>(offset));
      add(-power + static_cast<std::uint64_t>(offset));
    }
    // Half way between two floats, or two doubles, and one off.
    for (const int digits : {24, 53}) {
      for (int offset = -1; offset <= 1; ++offset) {
        add(power + (power >> digits) + static_cast<std::uint64_t>(offset));
        add(power + (power >> digits) * 3 + static_cast<std::uint64_t>(offset));
      }
    }
  }
  for (int i = 0; i < 50'000; ++i) add(random.bits() >> random.between(0, 63));
  return bytes;
}

// Values of a dtype: all of them up to 16 bits, else those where conversions go wrong, and random ones.
inline Bytes values(DType dtype, Random& random) {
  const DTypeInfo& type = info(dtype);
  Bytes bytes;
  if (type.itemsize <= 2) {
    for (std::uint32_t code = 0; code < (1U << (8U * type.itemsize)); ++code) {
      if (type.itemsize == 1) append(bytes, static_cast<std::uint8_t>(code));
      if (type.itemsize == 2) append(bytes, static_cast<std::uint16_t>(code));
    }
    return bytes;
  }
  if (type.kind == Kind::signed_integer || type.kind == Kind::unsigned_integer) return integers(random, type.itemsize);
  const bool single = dtype == DType::float32 || dtype == DType::complex64;
  bytes = single ? floats<float, std::uint32_t>(random) : floats<double, std::uint64_t>(random);
  // Away from pairs of a value and its negative, so that zero meets other numbers in one complex number.
  if (type.kind == Kind::complex) bytes.erase(bytes.begin(), bytes.begin() + type.itemsize / 2);
  bytes.resize(bytes.size() / type.itemsize * type.itemsize);
  return bytes;
}

}  // namespace ferry::test
