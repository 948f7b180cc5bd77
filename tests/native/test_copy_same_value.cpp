#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "host/copy.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::element;
using test::over;
using test::Random;
using test::random_shape;
using test::random_strided;
using test::set_element;
using test::Strided;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Index of the first change, or -1.
template <class To, class From>
std::int64_t first_change(std::vector<From> values, DType from, DType to, std::vector<To>* result = nullptr) {
  std::vector<To> destination(values.size());
  const auto mismatch = copy_same_value(over(destination, to), over(values, from));
  if (result != nullptr) *result = destination;
  return mismatch ? mismatch->index : -1;
}

TEST(CopySameValue, CopiesWhatSurvives) {
  std::vector<std::int8_t> result;
  EXPECT_EQ((first_change<std::int8_t, double>({1.0, -0.0, -128.0}, DType::float64, DType::int8, &result)), -1);
  EXPECT_EQ(result, (std::vector<std::int8_t>{1, 0, -128}));
}

TEST(CopySameValue, FindsRoundingWrappingAndSaturation) {
  EXPECT_EQ((first_change<float, double>({0.5, 0.1}, DType::float64, DType::float32)), 1);
  EXPECT_EQ((first_change<std::int8_t, std::int32_t>({127, 128}, DType::int32, DType::int8)), 1);
  EXPECT_EQ((first_change<std::uint64_t, std::int64_t>({5, -1}, DType::int64, DType::uint64)), 1);
  EXPECT_EQ((first_change<std::uint8_t, float>({255.0F, 256.0F}, DType::float32, DType::uint8)), 1);
  EXPECT_EQ((first_change<float, double>({infinity, 1e300}, DType::float64, DType::float32)), 1);
  EXPECT_EQ((first_change<std::uint8_t, std::uint8_t>({1, 2}, DType::uint8, DType::bool_)), 1);
}

TEST(CopySameValue, TakesNaNAsNaNButNotAsANumber) {
  EXPECT_EQ((first_change<float, double>({nan}, DType::float64, DType::float32)), -1);
  EXPECT_EQ((first_change<std::uint8_t, double>({nan}, DType::float64, DType::float8_e4m3fn)), -1);
  EXPECT_EQ((first_change<std::int32_t, double>({nan}, DType::float64, DType::int32)), 0);
  EXPECT_EQ((first_change<std::int32_t, double>({infinity}, DType::float64, DType::int32)), 0);
  EXPECT_EQ((first_change<std::uint8_t, double>({nan}, DType::float64, DType::float4_e2m1fn)), 0);
  EXPECT_EQ((first_change<std::uint8_t, double>({nan}, DType::float64, DType::bool_)), 0);
}

TEST(CopySameValue, ComparesSixtyFourBitIntegersWithDoublesExactly) {
  constexpr std::int64_t edge = std::int64_t{1} << 53;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ((first_change<double, std::int64_t>({edge, edge + 1}, DType::int64, DType::float64)), 1);
  EXPECT_EQ((first_change<double, std::int64_t>({-largest - 1, largest}, DType::int64, DType::float64)), 1);
  EXPECT_EQ((first_change<std::int64_t, double>({-0x1p63, 0x1p63}, DType::float64, DType::int64)), 1);
  EXPECT_EQ((first_change<std::uint64_t, double>({0x1p63, 0x1p64}, DType::float64, DType::uint64)), 1);
}

TEST(CopySameValue, CountsALostImaginaryPartAsAChange) {
  using Complex = std::complex<double>;
  EXPECT_EQ((first_change<double, Complex>({{1, 0}, {1, -0.0}, {1, 1e-300}}, DType::complex128, DType::float64)), 2);
  EXPECT_EQ((first_change<double, Complex>({{1, nan}}, DType::complex128, DType::float64)), 0);
  EXPECT_EQ((first_change<Complex, float>({2.5F}, DType::float32, DType::complex128)), -1);
}

TEST(CopySameValue, ReportsTheFirstChangeInCOrderWhateverTheLayouts) {
  Random random(99);
  for (int round = 0; round < 400; ++round) {
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 4)));
    const Strided source = random_strided(random, DType::int32, shape, false);
    const Strided destination = random_strided(random, DType::int8, shape);
    const std::int64_t count = element_count(shape).value();
    std::int64_t expected = -1;
    for (std::int64_t flat = 0; flat < count; ++flat) {
      const bool fits = random.between(0, 30) != 0;
      set_element(source.ref, flat, static_cast<std::int32_t>(fits ? random.between(-128, 127) : 128));
      if (!fits && expected < 0) expected = flat;
    }
    const auto mismatch = copy_same_value(destination.ref, source.ref);
    EXPECT_EQ(mismatch ? mismatch->index : -1, expected);
    for (std::int64_t flat = 0; !mismatch && flat < count; ++flat) {
      EXPECT_EQ(element<std::int8_t>(destination.ref, flat), element<std::int32_t>(source.ref, flat));
    }
  }
}

TEST(CopySameValue, CountsPackedElementsUnpacked) {
  std::vector<std::uint8_t> pairs{0x22, 0x12};  // 1, 1, 1, 0.5
  std::vector<std::int8_t> integers(4);
  const auto mismatch = copy_same_value(over(integers, DType::int8), over(pairs, DType::float4_e2m1fn_x2));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->index, 3);
  std::vector<float> floats{1.0F, 6.0F, 5.0F, 0.0F};
  const auto packing = copy_same_value(over(pairs, DType::float4_e2m1fn_x2), over(floats, DType::float32));
  ASSERT_TRUE(packing);
  EXPECT_EQ(packing->index, 2);
}

TEST(CopySameValue, ComparesWithTheValueOfAMarkedSource) {
  std::vector<double> values{-3.0};
  std::vector<std::uint8_t> result(1);
  TensorRef from = over(values, DType::float64);
  from.negated = true;
  EXPECT_FALSE(copy_same_value(over(result, DType::uint8), from));
  EXPECT_EQ(result[0], 3);
}

TEST(CopySameValue, FindsAChangeDeepInALongRow) {
  std::vector<std::int64_t> values(5000, 1);
  values[4321] = 1000;
  EXPECT_EQ((first_change<std::int8_t>(values, DType::int64, DType::int8)), 4321);
}

}  // namespace
}  // namespace ferry
