// Direct rows against the block path, bit for bit, and against C++ arithmetic where C++ defines the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "host/block_cast.hpp"
#include "host/copy.hpp"
#include "host/direct_row.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::over;
using test::Random;
using Bytes = std::vector<std::byte>;

constexpr DType real_dtypes[] = {DType::bool_,   DType::uint8,    DType::uint16,  DType::uint32,    DType::uint64,
                                 DType::int8,    DType::int16,    DType::int32,   DType::int64,     DType::float16,
                                 DType::float32, DType::bfloat16, DType::float64, DType::complex64, DType::complex128};

// Calls visit(to, from, row) for every pair that has a direct row.
template <class Visit>
void for_each_pair(Visit&& visit) {
  for (const DType to : real_dtypes) {
    for (const DType from : real_dtypes) {
      const DirectRow row = direct_row(to, from);
      if (row == nullptr) continue;
      SCOPED_TRACE(std::string(info(from).name) + " to " + std::string(info(to).name));
      visit(to, from, row);
    }
  }
}

void through_blocks(DType to_dtype, std::byte* to, std::int64_t to_step, DType from_dtype, const std::byte* from,
                    std::int64_t from_step, std::int64_t extent) {
  const BlockCast cast(to_dtype, from_dtype);
  Block from_block;
  Block to_block;
  for_each_block(extent, [&](std::int64_t first, std::int64_t count) {
    element_io(from_dtype, false).load(from + first * from_step, from_step, count, from_block);
    cast(from_block, to_block, count);
    element_io(to_dtype, false).store(to + first * to_step, to_step, count, to_block);
  });
}

template <class T>
void append(Bytes& bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

// Both signs of a value and of its neighbours.
template <class Float>
void append_around(Bytes& bytes, Float value) {
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

Bytes integers(Random& random, std::int64_t itemsize) {
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
Bytes values(DType dtype, Random& random) {
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

// Position of the first element that differs, or -1.
std::int64_t first_difference(const Bytes& a, const Bytes& b, std::int64_t itemsize) {
  const auto difference = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return difference == a.end() ? -1 : (difference - a.begin()) / itemsize;
}

TEST(DirectRow, GivesTheBitsOfTheBlockPath) {
  Random random(20240917);
  std::vector<Bytes> sources;
  for (const DType from : real_dtypes) sources.push_back(values(from, random));
  for_each_pair([&](DType to, DType from, DirectRow row) {
    const auto at = std::find(std::begin(real_dtypes), std::end(real_dtypes), from) - std::begin(real_dtypes);
    const Bytes& source = sources[static_cast<std::size_t>(at)];
    const std::int64_t to_size = info(to).itemsize;
    const std::int64_t from_size = info(from).itemsize;
    const auto count = static_cast<std::int64_t>(source.size()) / from_size;
    Bytes expected(static_cast<std::size_t>(count * to_size));
    Bytes contiguous = expected;
    Bytes backwards = expected;
    through_blocks(to, expected.data(), to_size, from, source.data(), from_size, count);
    row(contiguous.data(), to_size, source.data(), from_size, count);
    ASSERT_EQ(first_difference(contiguous, expected, to_size), -1);
    const std::int64_t last = count - 1;
    row(backwards.data() + last * to_size, -to_size, source.data() + last * from_size, -from_size, count);
    ASSERT_EQ(first_difference(backwards, expected, to_size), -1);
  });
}

TEST(DirectRow, TakesAnyCountStepAndAlignmentAndLeavesGapsAlone) {
  Random random(7);
  for_each_pair([&](DType to, DType from, DirectRow row) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      const std::int64_t to_size = info(to).itemsize;
      const std::int64_t from_size = info(from).itemsize;
      const bool packed = random.between(0, 1) == 0;
      std::int64_t to_step = packed ? to_size : random.between(to_size, to_size + 9);
      std::int64_t from_step = packed ? from_size : random.between(0, from_size + 9);
      Bytes source(static_cast<std::size_t>(70 * (from_size + 9) + 64));
      Bytes expected(static_cast<std::size_t>(70 * (to_size + 9) + 64));
      for (std::byte& byte : source) byte = static_cast<std::byte>(random.bits());
      for (std::byte& byte : expected) byte = static_cast<std::byte>(random.bits());
      Bytes result = expected;
      std::int64_t to_first = random.between(0, 15);
      std::int64_t from_first = random.between(0, 15);
      if (!packed && count > 0 && random.between(0, 1) == 0) {
        to_first += (count - 1) * to_step;
        to_step = -to_step;
      }
      if (!packed && count > 0 && random.between(0, 1) == 0) {
        from_first += (count - 1) * from_step;
        from_step = -from_step;
      }
      through_blocks(to, expected.data() + to_first, to_step, from, source.data() + from_first, from_step, count);
      row(result.data() + to_first, to_step, source.data() + from_first, from_step, count);
      ASSERT_EQ(result, expected) << "count " << count << ", steps " << to_step << " and " << from_step;
    }
  });
}

template <class To, class From>
std::vector<To> convert(std::vector<From> source, DType from, DType to) {
  std::vector<To> result(source.size());
  direct_row(to, from)(reinterpret_cast<std::byte*>(result.data()), sizeof(To),
                       reinterpret_cast<const std::byte*>(source.data()), sizeof(From),
                       static_cast<std::int64_t>(source.size()));
  return result;
}

TEST(DirectRow, ClampsEveryFloatAsLongDoubleArithmeticDoes) {
  Random random(11);
  const Bytes bytes = floats<float, std::uint32_t>(random);
  std::vector<float> source(bytes.size() / sizeof(float));
  std::memcpy(source.data(), bytes.data(), bytes.size());
  const auto check = [&]<class Int>(DType to, Int) {
    const auto result = convert<Int>(source, DType::float32, to);
    for (std::size_t i = 0; i < source.size(); ++i) {
      const auto low = static_cast<long double>(std::numeric_limits<Int>::min());
      const auto high = static_cast<long double>(std::numeric_limits<Int>::max());
      const long double value = std::isnan(source[i]) ? 0.0L : std::trunc(static_cast<long double>(source[i]));
      ASSERT_EQ(result[i], static_cast<Int>(std::clamp(value, low, high))) << source[i];
    }
  };
  check(DType::int8, std::int8_t{});
  check(DType::uint8, std::uint8_t{});
  check(DType::int16, std::int16_t{});
  check(DType::uint16, std::uint16_t{});
  check(DType::int32, std::int32_t{});
  check(DType::uint32, std::uint32_t{});
  if constexpr (std::numeric_limits<long double>::digits >= 64) {
    check(DType::int64, std::int64_t{});
    check(DType::uint64, std::uint64_t{});
  }
}

TEST(DirectRow, RoundsFloatToFloat16OnceTiesToEven) {
  const std::vector<float> source{0x1p-25F, 0x1.000002p-25F, 0x1.8p-24F, 65519.996F, 65520.0F, 2049.0F, 2051.0F, -0.0F};
  EXPECT_EQ(convert<std::uint16_t>(source, DType::float32, DType::float16),
            (std::vector<std::uint16_t>{0x0000, 0x0001, 0x0002, 0x7BFF, 0x7C00, 0x6800, 0x6802, 0x8000}));
}

TEST(DirectRow, KeepsTheSignOfANaNAndDropsItsPayloadInSmallFormats) {
  EXPECT_EQ((convert<std::uint32_t, std::uint16_t>({0x7F81, 0xFFFF, 0xFF80}, DType::bfloat16, DType::float32)),
            (std::vector<std::uint32_t>{0x7FC00000, 0xFFC00000, 0xFF800000}));
  EXPECT_EQ((convert<std::uint16_t, std::uint32_t>({0x7F800001, 0xFFFFFFFF}, DType::float32, DType::float16)),
            (std::vector<std::uint16_t>{0x7E00, 0xFE00}));
}

TEST(DirectRow, IsThereForCommonPairsAndAbsentWhereBitsAloneMove) {
  for (const auto& [to, from] : {std::pair{DType::float32, DType::float64},
                                 {DType::float32, DType::bfloat16},
                                 {DType::float32, DType::float16},
                                 {DType::bfloat16, DType::float32},
                                 {DType::float16, DType::float32},
                                 {DType::float32, DType::uint8},
                                 {DType::uint8, DType::float32},
                                 {DType::int64, DType::int32},
                                 {DType::float64, DType::int64},
                                 {DType::complex64, DType::complex128},
                                 {DType::float32, DType::complex64},
                                 {DType::bool_, DType::float64}}) {
    EXPECT_NE(direct_row(to, from), nullptr) << info(from).name << " to " << info(to).name;
  }
  for (const DType same : real_dtypes) EXPECT_EQ(direct_row(same, same), nullptr) << info(same).name;
  EXPECT_EQ(direct_row(DType::float32, DType::float8_e5m2), nullptr);
  EXPECT_EQ(direct_row(DType::float16, DType::float64), nullptr);  // would round twice, through float32
}

TEST(DirectRow, StaysAsideWhenMemoryDoesNotHoldTheValue) {
  std::vector<std::int16_t> source{1, -2};
  std::vector<double> result(2);
  TensorRef from = over(source, DType::int16);
  from.negated = true;
  copy(over(result, DType::float64), from);
  EXPECT_EQ(result, (std::vector<double>{-1.0, 2.0}));
  from.negated = false;
  from.byte_swapped = true;
  copy(over(result, DType::float64), from);
  EXPECT_EQ(result, (std::vector<double>{256.0, -257.0}));
  std::vector<std::complex<float>> numbers{{1.0F, 2.0F}};
  std::vector<std::complex<double>> wide(1);
  TensorRef conjugate = over(numbers, DType::complex64);
  conjugate.conjugated = true;
  copy(over(wide, DType::complex128), conjugate);
  EXPECT_EQ(wide[0], std::complex<double>(1.0, -2.0));
}

}  // namespace
}  // namespace ferry
