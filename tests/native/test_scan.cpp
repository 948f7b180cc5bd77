#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <limits>

#include "core/error.hpp"
#include "host/scan.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::over;
using test::Random;
using test::random_shape;
using test::random_strided;
using test::set_element;
using test::Strided;
using test::tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(ScanNonfinite, CountsNaNAndInfinity) {
  std::vector<float> values{1.0F, static_cast<float>(infinity), 2.0F, static_cast<float>(nan), -1.0F};
  const ScanReport report = scan_nonfinite(over(values, DType::float32));
  EXPECT_EQ(report.count, 2);
  EXPECT_EQ(report.first, 1);
}

TEST(ScanNonfinite, LooksAtBothPartsOfAComplexNumber) {
  std::vector<std::complex<double>> values{{1, 2}, {0, nan}, {infinity, 0}};
  const ScanReport report = scan_nonfinite(over(values, DType::complex128));
  EXPECT_EQ(report.count, 2);
  EXPECT_EQ(report.first, 1);
}

TEST(ScanNonfinite, FindsNothingAmongIntegersOrInAnEmptyTensor) {
  std::vector<std::int32_t> values{1, -1};
  EXPECT_EQ(scan_nonfinite(over(values, DType::int32)).count, 0);
  EXPECT_EQ(scan_nonfinite(tensor(nullptr, DType::float32, {0, 3}, {12, 4})).first, -1);
}

TEST(ScanNonfinite, ReadsSmallFormatsAndTheOtherByteOrder) {
  std::vector<std::uint8_t> fn{0x7E, 0x7F, 0xFF};
  EXPECT_EQ(scan_nonfinite(over(fn, DType::float8_e4m3fn)).count, 2);
  std::vector<std::uint16_t> halves{0x007C, 0x003C};  // infinity and 1 with their bytes swapped
  TensorRef swapped = over(halves, DType::float16);
  swapped.byte_swapped = true;
  EXPECT_EQ(scan_nonfinite(swapped).count, 1);
}

TEST(ScanNonfinite, CountsAsAPlainLoopOverAnyLayout) {
  Random random(404);
  for (int round = 0; round < 300; ++round) {
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 4)));
    const Strided strided = random_strided(random, DType::float64, shape, false);
    ScanReport expected;
    const std::int64_t count = element_count(shape).value();
    for (std::int64_t flat = 0; flat < count; ++flat) {
      const bool bad = random.between(0, 40) == 0;
      set_element(strided.ref, flat, bad ? nan : 1.0);
      if (bad && expected.count++ == 0) expected.first = flat;
    }
    const ScanReport report = scan_nonfinite(strided.ref);
    EXPECT_EQ(report.count, expected.count);
    EXPECT_EQ(report.first, expected.first);
  }
}

TEST(ScanNonfinite, FindsTheFirstAcrossBlocksOfALongRow) {
  std::vector<double> values(5000, 0.0);
  values[777] = values[4999] = infinity;
  const ScanReport report = scan_nonfinite(over(values, DType::float64));
  EXPECT_EQ(report.count, 2);
  EXPECT_EQ(report.first, 777);
}

TEST(ScanOutside, TakesTheBoundsAsInsideAndNaNAsOutside) {
  std::vector<double> values{0.0, 1.0, std::nextafter(1.0, 2.0), nan, -0.0};
  const ScanReport report = scan_outside(over(values, DType::float64), 0.0, 1.0);
  EXPECT_EQ(report.count, 2);
  EXPECT_EQ(report.first, 2);
}

TEST(ScanOutside, ComparesSixtyFourBitIntegersExactly) {
  std::vector<std::int64_t> values{9007199254740992, 9007199254740993};  // 2^53 and its neighbour
  EXPECT_EQ(scan_outside(over(values, DType::int64), 0.0, 9007199254740992.0).first, 1);
  std::vector<std::uint64_t> top{std::numeric_limits<std::uint64_t>::max()};
  EXPECT_EQ(scan_outside(over(top, DType::uint64), 0.0, 18446744073709551616.0).count, 0);
  EXPECT_EQ(scan_outside(over(top, DType::uint64), 0.0, 18446744073709549568.0).count, 1);
}

TEST(ScanOutside, HasNothingInsideUnorderedBounds) {
  std::vector<std::int8_t> values{0, 1};
  EXPECT_EQ(scan_outside(over(values, DType::int8), 1.0, 0.0).count, 2);
  EXPECT_EQ(scan_outside(over(values, DType::int8), nan, 1.0).count, 2);
}

TEST(ScanOutside, CountsBooleansAndPackedPairs) {
  std::vector<std::uint8_t> flags{0, 7};
  EXPECT_EQ(scan_outside(over(flags, DType::bool_), 0.0, 0.0).first, 1);
  std::vector<std::uint8_t> pairs{0x22, 0x72};  // 1, 1, 1, 6
  EXPECT_EQ(scan_outside(over(pairs, DType::float4_e2m1fn_x2), 0.0, 2.0).first, 3);
}

TEST(ScanOutside, LooksAtTheValueOfANegatedTensor) {
  std::vector<float> values{3.0F, -3.0F};
  TensorRef negated = over(values, DType::float32);
  negated.negated = true;
  EXPECT_EQ(scan_outside(negated, 0.0, 5.0).first, 0);
}

TEST(ScanOutside, RefusesComplexNumbers) {
  std::vector<std::complex<float>> values(1);
  try {
    (void)scan_outside(over(values, DType::complex64), 0.0, 1.0);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::dtype);
  }
}

}  // namespace
}  // namespace ferry
