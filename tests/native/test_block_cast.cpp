// The defined casts of copy.hpp, value by value.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "host/block_cast.hpp"
#include "host/copy.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::over;

template <class To, class From>
std::vector<To> cast(std::vector<From> values, DType from, DType to) {
  std::vector<To> result(values.size());
  copy(over(result, to), over(values, from));
  return result;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(CastToInteger, TruncatesTowardZero) {
  EXPECT_EQ((cast<std::int32_t, double>({1.9, -1.9, 0.5, -0.5}, DType::float64, DType::int32)),
            (std::vector<std::int32_t>{1, -1, 0, 0}));
}

TEST(CastToInteger, SaturatesFloatsAtTheEndsAndTakesNaNAsZero) {
  const std::vector<double> extremes{infinity, -infinity, nan, 1e30, -1e30, 127.9, 128.0, -128.9, -129.0};
  EXPECT_EQ((cast<std::int8_t>(extremes, DType::float64, DType::int8)),
            (std::vector<std::int8_t>{127, -128, 0, 127, -128, 127, 127, -128, -128}));
  EXPECT_EQ((cast<std::uint8_t>(extremes, DType::float64, DType::uint8)),
            (std::vector<std::uint8_t>{255, 0, 0, 255, 0, 127, 128, 0, 0}));
  const std::vector<double> wide{
      infinity, -infinity, nan, 9223372036854775808.0, -9223372036854775808.0, 9223372036854774784.0};
  constexpr std::int64_t top = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t bottom = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ((cast<std::int64_t>(wide, DType::float64, DType::int64)),
            (std::vector<std::int64_t>{top, bottom, 0, top, bottom, 9223372036854774784}));
  EXPECT_EQ((cast<std::uint64_t>(wide, DType::float64, DType::uint64))[3], 9223372036854775808U);
  EXPECT_EQ((cast<std::uint64_t>(wide, DType::float64, DType::uint64))[0], std::numeric_limits<std::uint64_t>::max());
}

TEST(CastToInteger, SaturatesAtTheEndsOfSmallIntegersToo) {
  const std::vector<float> values{9.0F, -9.0F, 0.5F, -1.0F};
  EXPECT_EQ((cast<std::uint8_t>(values, DType::float32, DType::int4)), (std::vector<std::uint8_t>{7, 8, 0, 15}));
  EXPECT_EQ((cast<std::uint8_t>(values, DType::float32, DType::int1)), (std::vector<std::uint8_t>{0, 1, 0, 1}));
  EXPECT_EQ((cast<std::uint8_t>(values, DType::float32, DType::uint1)), (std::vector<std::uint8_t>{1, 0, 0, 0}));
}

TEST(CastToInteger, WrapsIntegers) {
  EXPECT_EQ((cast<std::int8_t, std::int32_t>({300, -129, 128}, DType::int32, DType::int8)),
            (std::vector<std::int8_t>{44, 127, -128}));
  EXPECT_EQ((cast<std::uint64_t, std::int8_t>({-1}, DType::int8, DType::uint64))[0], ~std::uint64_t{0});
  EXPECT_EQ((cast<std::uint8_t, std::uint64_t>({0xFFFFFFFFFFFFFF19U}, DType::uint64, DType::uint4))[0], 9);
}

TEST(CastToBoolean, IsTrueForAnythingButZero) {
  EXPECT_EQ((cast<std::uint8_t, double>({0.0, -0.0, 0.25, nan, -infinity}, DType::float64, DType::bool_)),
            (std::vector<std::uint8_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ((cast<std::uint8_t, std::int32_t>({0, 256, -1}, DType::int32, DType::bool_)),
            (std::vector<std::uint8_t>{0, 1, 1}));
  using Complex = std::complex<float>;
  EXPECT_EQ((cast<std::uint8_t, Complex>({{0, 0}, {0, 1}, {2, 0}}, DType::complex64, DType::bool_)),
            (std::vector<std::uint8_t>{0, 1, 1}));
}

TEST(CastToFloat, RoundsDoubleToFloat16Once) {
  // Through float32 this would first become the tie 1 + 2^-11 and then 1.
  EXPECT_EQ((cast<std::uint16_t, double>({1.0 + 0x1p-11 + 0x1p-40}, DType::float64, DType::float16))[0], 0x3C01);
  EXPECT_EQ((cast<std::uint16_t, double>({1.0 + 0x1p-8 + 0x1p-40}, DType::float64, DType::bfloat16))[0], 0x3F81);
}

TEST(CastToFloat, RoundsWideIntegersOnce) {
  // One more than a bfloat16 tie; double drops the one, and the tie would go down to even.
  const std::int64_t above_tie = (std::int64_t{0b100000001} << 54) + 1;
  EXPECT_EQ((cast<std::uint16_t, std::int64_t>({above_tie, -above_tie, above_tie - 1}, DType::int64, DType::bfloat16)),
            (std::vector<std::uint16_t>{0x5E81, 0xDE81, 0x5E80}));
  test::Random random(64);
  std::vector<std::int64_t> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<std::int64_t>(random.bits() >> random.between(0, 60)));
  const auto floats = cast<float>(values, DType::int64, DType::float32);
  const auto doubles = cast<double>(values, DType::int64, DType::float64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(floats[i], static_cast<float>(values[i]));
    EXPECT_EQ(doubles[i], static_cast<double>(values[i]));
  }
}

TEST(CastToFloat, OverflowsAsTheFormatDoes) {
  const std::vector<double> values{1e300, -1e300};
  EXPECT_EQ((cast<float>(values, DType::float64, DType::float32))[1], static_cast<float>(-infinity));
  EXPECT_EQ((cast<std::uint8_t>(values, DType::float64, DType::float8_e4m3fn)), (std::vector<std::uint8_t>{127, 255}));
  EXPECT_EQ((cast<std::uint8_t>(values, DType::float64, DType::float4_e2m1fn)), (std::vector<std::uint8_t>{7, 15}));
}

TEST(CastToComplex, SetsTheImaginaryPartToZero) {
  using Complex = std::complex<double>;
  EXPECT_EQ((cast<Complex, float>({1.5F}, DType::float32, DType::complex128))[0], Complex(1.5, 0.0));
  EXPECT_EQ((cast<Complex, std::uint8_t>({3}, DType::uint8, DType::complex128))[0], Complex(3.0, 0.0));
}

TEST(CastToComplex, KeepsSixtyFourBitIntegersToOneRounding) {
  const std::int64_t value = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ((cast<std::complex<double>, std::int64_t>({value}, DType::int64, DType::complex128))[0].real(), 0x1p53);
  const std::int64_t above_tie = (std::int64_t{0x1000001} << 36) + 1;
  EXPECT_EQ((cast<std::complex<float>, std::int64_t>({above_tie}, DType::int64, DType::complex64))[0].real(),
            static_cast<float>(above_tie));
}

TEST(CastFromComplex, DropsTheImaginaryPart) {
  using Complex = std::complex<double>;
  EXPECT_EQ((cast<double, Complex>({{1.5, 9}}, DType::complex128, DType::float64))[0], 1.5);
  EXPECT_EQ((cast<std::int16_t, Complex>({{-7.9, 1}, {1e9, 0}}, DType::complex128, DType::int16)),
            (std::vector<std::int16_t>{-7, 32767}));
}

TEST(CastFromBoolean, GivesZeroOrOne) {
  EXPECT_EQ((cast<float, std::uint8_t>({0, 1, 200}, DType::bool_, DType::float32)), (std::vector<float>{0, 1, 1}));
  EXPECT_EQ((cast<std::int64_t, std::uint8_t>({200}, DType::bool_, DType::int64))[0], 1);
}

TEST(ApplyBits, NegatesWithinTheTypeItself) {
  const auto negated = [](DType dtype, auto value, auto* carrier) {
    using Carrier = std::remove_pointer_t<decltype(carrier)>;
    TensorRef tensor;
    tensor.dtype = dtype;
    tensor.negated = true;
    Block block;
    *block.as<Carrier>() = value;
    apply_bits(tensor, block, 1);
    return *block.as<Carrier>();
  };
  std::int64_t* as_int = nullptr;
  std::uint64_t* as_uint = nullptr;
  double* as_double = nullptr;
  EXPECT_EQ(negated(DType::int8, -128, as_int), -128);
  EXPECT_EQ(negated(DType::int4, -8, as_int), -8);
  EXPECT_EQ(negated(DType::int64, std::numeric_limits<std::int64_t>::min(), as_int),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(negated(DType::uint8, 1U, as_uint), 255U);
  EXPECT_EQ(negated(DType::bool_, 1U, as_uint), 1U);
  EXPECT_EQ(negated(DType::float64, 2.5, as_double), -2.5);
  EXPECT_FALSE(std::signbit(negated(DType::float8_e4m3fnuz, 0.0, as_double)));
  EXPECT_TRUE(std::isnan(negated(DType::float8_e8m0fnu, 1.0, as_double)));
}

}  // namespace
}  // namespace ferry
