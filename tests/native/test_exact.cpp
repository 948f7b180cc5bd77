#include <gtest/gtest.h>

#include "host/exact.hpp"
#include "support.hpp"

namespace ferry {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t ulargest = std::numeric_limits<std::uint64_t>::max();

TEST(RoundToOdd, KeepsWhatDoubleHolds) {
  EXPECT_EQ(to_double_odd(std::int64_t{0}), 0.0);
  EXPECT_EQ(to_double_odd(std::int64_t{-7}), -7.0);
  EXPECT_EQ(to_double_odd(smallest), -two_to_63);
  EXPECT_EQ(to_double_odd(std::uint64_t{1} << 63U), two_to_63);
}

TEST(RoundToOdd, LeavesTheLastBitSetWhenInexact) {
  const std::uint64_t edge = std::uint64_t{1} << 53U;
  EXPECT_EQ(to_double_odd(edge + 1), 9007199254740994.0);  // to nearest even it would be 2^53
  EXPECT_EQ(to_double_odd(edge + 3), 9007199254740994.0);
  EXPECT_EQ(to_double_odd(ulargest), std::nextafter(two_to_64, 0.0));
}

TEST(RoundToOdd, RoundsToFloatAsTheIntegerItself) {
  test::Random random(7);
  for (int i = 0; i < 200000; ++i) {
    std::uint64_t value = random.bits() >> random.between(0, 40);
    // Half of them just beside the midpoint of two floats.
    if (i % 2 == 0) value = (value & ~0xFFFFFFFFFFULL) | 0x8000000000ULL | (value & 1U);
    EXPECT_EQ(static_cast<float>(to_double_odd(value)), static_cast<float>(value)) << value;
    const auto negative = static_cast<std::int64_t>(value);
    EXPECT_EQ(static_cast<float>(to_double_odd(negative)), static_cast<float>(negative)) << negative;
  }
}

TEST(IntegersBetween, RoundsTheBoundsInwards) {
  const auto range = integers_between<std::int64_t>(-1.5, 2.5);
  EXPECT_EQ(range.low, -1);
  EXPECT_EQ(range.high, 2);
}

TEST(IntegersBetween, ReachesTheEndsOfTheType) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(integers_between<std::int64_t>(-infinity, infinity).contains(smallest));
  EXPECT_TRUE(integers_between<std::int64_t>(-infinity, two_to_63).contains(largest));
  EXPECT_FALSE(integers_between<std::int64_t>(0, std::nextafter(two_to_63, 0.0)).contains(largest));
  EXPECT_TRUE(integers_between<std::uint64_t>(-infinity, two_to_64).contains(ulargest));
  EXPECT_TRUE(integers_between<std::uint64_t>(-5, 0).contains(0));
}

TEST(IntegersBetween, IsEmptyForUnorderedOrUnreachableBounds) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [low, high] : {std::pair{nan, 1.0}, {0.0, nan}, {2.0, 1.0}, {two_to_63, two_to_64}, {0.2, 0.8}}) {
    const auto range = integers_between<std::int64_t>(low, high);
    EXPECT_GT(range.low, range.high) << low << ' ' << high;
  }
  const auto below_zero = integers_between<std::uint64_t>(-3.0, -1.0);
  EXPECT_GT(below_zero.low, below_zero.high);
}

TEST(SameValue, ComparesIntegersWithDoublesExactly) {
  EXPECT_FALSE(same_value(largest, two_to_63));
  EXPECT_TRUE(same_value(smallest, -two_to_63));
  EXPECT_FALSE(same_value(ulargest, two_to_64));
  EXPECT_FALSE(same_value(std::int64_t{1} + (std::int64_t{1} << 53), 9007199254740992.0));
  EXPECT_TRUE(same_value(std::int64_t{0}, -0.0));
  EXPECT_FALSE(same_value(std::int64_t{0}, 0.5));
  EXPECT_FALSE(same_value(std::int64_t{0}, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(same_value(std::int64_t{-1}, ulargest));
}

TEST(SameValue, TakesNaNAsItselfAndAnImaginaryPartAsAChange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(same_value(nan, nan));
  EXPECT_TRUE(same_value(std::complex<double>(1.0, -0.0), 1.0));
  EXPECT_FALSE(same_value(std::complex<double>(1.0, nan), 1.0));
  EXPECT_FALSE(same_value(std::int64_t{3}, std::complex<double>(3.0, 1.0)));
}

}  // namespace
}  // namespace ferry
