#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "host/exact.hpp"
#include "host/float_format.hpp"
#include "support.hpp"

namespace ferry {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr DType all_formats[] = {DType::float16,         DType::bfloat16,           DType::float8_e3m4,
                                 DType::float8_e4m3,     DType::float8_e4m3b11fnuz, DType::float8_e4m3fn,
                                 DType::float8_e4m3fnuz, DType::float8_e5m2,        DType::float8_e5m2fnuz,
                                 DType::float8_e8m0fnu,  DType::float6_e2m3fn,      DType::float6_e3m2fn,
                                 DType::float4_e2m1fn};

std::uint32_t code_count(DType dtype) { return 1U << float_format(dtype).total_bits(); }

// Limits and special codes as ml_dtypes.finfo and ml_dtypes casts give them.
struct Facts {
  DType dtype;
  double largest;
  double smallest;  // above zero
  std::uint32_t of_nan, of_negative_nan, of_infinity, of_too_large, of_minus_zero;
};

constexpr Facts facts[] = {
    {DType::float16, 65504.0, 0x1p-24, 0x7E00, 0xFE00, 0x7C00, 0x7C00, 0x8000},
    {DType::bfloat16, 0x1.FEp127, 0x1p-133, 0x7FC0, 0xFFC0, 0x7F80, 0x7F80, 0x8000},
    {DType::float8_e3m4, 15.5, 0x1p-6, 0x78, 0xF8, 0x70, 0x70, 0x80},
    {DType::float8_e4m3, 240.0, 0x1p-9, 0x7C, 0xFC, 0x78, 0x78, 0x80},
    {DType::float8_e4m3b11fnuz, 30.0, 0x1p-13, 0x80, 0x80, 0x80, 0x80, 0x00},
    {DType::float8_e4m3fn, 448.0, 0x1p-9, 0x7F, 0xFF, 0x7F, 0x7F, 0x80},
    {DType::float8_e4m3fnuz, 240.0, 0x1p-10, 0x80, 0x80, 0x80, 0x80, 0x00},
    {DType::float8_e5m2, 57344.0, 0x1p-16, 0x7E, 0xFE, 0x7C, 0x7C, 0x80},
    {DType::float8_e5m2fnuz, 57344.0, 0x1p-17, 0x80, 0x80, 0x80, 0x80, 0x00},
    {DType::float8_e8m0fnu, 0x1p127, 0x1p-127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF},
    {DType::float6_e2m3fn, 7.5, 0x1p-3, 0x20, 0x00, 0x1F, 0x1F, 0x20},
    {DType::float6_e3m2fn, 28.0, 0x1p-4, 0x20, 0x00, 0x1F, 0x1F, 0x20},
    {DType::float4_e2m1fn, 6.0, 0x1p-1, 0x08, 0x00, 0x07, 0x07, 0x08},
};

TEST(FloatFormat, HasTheLimitsAndSpecialCodesOfMlDtypes) {
  for (const Facts& fact : facts) {
    SCOPED_TRACE(info(fact.dtype).name);
    const FloatFormat format = float_format(fact.dtype);
    double largest = 0.0;
    double smallest = infinity;
    for (std::uint32_t code = 0; code < code_count(fact.dtype); ++code) {
      const double value = decode(format, code);
      if (std::isfinite(value)) largest = std::max(largest, value);
      if (value > 0.0) smallest = std::min(smallest, value);
    }
    EXPECT_EQ(largest, fact.largest);
    EXPECT_EQ(smallest, fact.smallest);
    EXPECT_EQ(encode(format, nan), fact.of_nan);
    EXPECT_EQ(encode(format, -nan), fact.of_negative_nan);
    EXPECT_EQ(encode(format, infinity), fact.of_infinity);
    EXPECT_EQ(encode(format, 1e300), fact.of_too_large);
    EXPECT_EQ(encode(format, -0.0), fact.of_minus_zero);
  }
}

TEST(FloatFormat, RoundTripsEveryCode) {
  for (const DType dtype : all_formats) {
    const FloatFormat format = float_format(dtype);
    for (std::uint32_t code = 0; code < code_count(dtype); ++code) {
      const double value = decode(format, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(format, encode(format, value)))) << info(dtype).name << ' ' << code;
      } else {
        EXPECT_EQ(encode(format, value), code) << info(dtype).name;
      }
    }
  }
}

#if defined(__aarch64__)
using CompilerHalf = __fp16;  // g++ 12 has no other name for it there
#else
using CompilerHalf = _Float16;
#endif

TEST(FloatFormat, DecodesFloat16AndBfloat16AsTheCompilerDoes) {
  for (std::uint32_t code = 0; code < 0x10000U; ++code) {
    const auto half = static_cast<double>(std::bit_cast<CompilerHalf>(static_cast<std::uint16_t>(code)));
    const auto brain = static_cast<double>(std::bit_cast<float>(code << 16U));
    EXPECT_TRUE(same_value(decode(float_format(DType::float16), code), half)) << code;
    EXPECT_TRUE(same_value(decode(float_format(DType::bfloat16), code), brain)) << code;
  }
}

TEST(FloatFormat, RoundsRandomDoublesToFloat16AsTheCompilerDoes) {
  test::Random random(16);
  for (int i = 0; i < 300000; ++i) {
    const double value = std::ldexp(1.0 + static_cast<double>(random.bits() >> 12U) * 0x1p-52,
                                    static_cast<int>(random.between(-30, 20)));
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<CompilerHalf>(value));
    EXPECT_EQ(encode(float_format(DType::float16), value), expected) << value;
  }
}

// Finite values and their codes in rising order; the sign of zero aside.
std::map<double, std::uint32_t> finite_codes(DType dtype) {
  std::map<double, std::uint32_t> codes;
  for (std::uint32_t code = code_count(dtype); code-- > 0;) {
    const double value = decode(float_format(dtype), code);
    if (std::isfinite(value)) codes[value] = code;
  }
  return codes;
}

TEST(FloatFormat, RoundsToTheNearestAndTiesToTheEvenCode) {
  for (const DType dtype : all_formats) {
    if (dtype == DType::float8_e8m0fnu) continue;  // its own test
    SCOPED_TRACE(info(dtype).name);
    const FloatFormat format = float_format(dtype);
    const auto codes = finite_codes(dtype);
    for (auto low = codes.begin(), high = std::next(low); high != codes.end(); ++low, ++high) {
      const double middle = (low->first + high->first) / 2;
      const double even = low->second % 2 == 0 ? low->first : high->first;
      EXPECT_EQ(decode(format, encode(format, middle)), even);
      EXPECT_EQ(decode(format, encode(format, std::nextafter(middle, -infinity))), low->first);
      EXPECT_EQ(decode(format, encode(format, std::nextafter(middle, infinity))), high->first);
    }
  }
}

TEST(FloatFormat, OverflowsFromTheMiddleOfTheNextStep) {
  const FloatFormat fn = float_format(DType::float8_e4m3fn);
  EXPECT_EQ(encode(fn, 464.0), 0x7EU);  // the tie between 448 and the 480 that is no number goes to even
  EXPECT_EQ(encode(fn, std::nextafter(464.0, infinity)), 0x7FU);
  EXPECT_EQ(encode(float_format(DType::float16), std::nextafter(65520.0, 0.0)), 0x7BFFU);
  EXPECT_EQ(encode(float_format(DType::float16), 65520.0), 0x7C00U);
  EXPECT_EQ(encode(float_format(DType::float4_e2m1fn), -6.1), 0xFU);
}

TEST(FloatFormat, RoundsExponentOnlyNumbersAsMlDtypesAndTorchDo) {
  const FloatFormat format = float_format(DType::float8_e8m0fnu);
  EXPECT_EQ(encode(format, 1.5), 0x80U);
  EXPECT_EQ(encode(format, 3.0), 0x81U);
  EXPECT_EQ(encode(format, std::nextafter(1.5, 0.0)), 0x7FU);
  EXPECT_EQ(encode(format, 0x1p-127), 0x00U);
  EXPECT_EQ(encode(format, 0x1.4p-127), 0x01U);
  EXPECT_EQ(encode(format, 0x1p-1074), 0x00U);
  EXPECT_EQ(encode(format, 0x1.8p127), 0xFFU);
  EXPECT_EQ(encode(format, 0.0), 0xFFU);
  EXPECT_EQ(encode(format, -1.0), 0xFFU);
}

TEST(FloatFormat, IgnoresBitsAboveItsOwn) {
  EXPECT_EQ(decode(float_format(DType::float4_e2m1fn), 0xF5U), 3.0);
  EXPECT_EQ(decode(float_format(DType::float6_e2m3fn), 0xC0U | 0x2CU), -1.5);
}

}  // namespace
}  // namespace ferry
