#include <gtest/gtest.h>

#include <limits>

#include "core/checked_math.hpp"

namespace ferry {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

TEST(CheckedMath, GivesResultsThatFit) {
  EXPECT_EQ(checked_mul(3, -5), -15);
  EXPECT_EQ(checked_mul(largest, 1), largest);
  EXPECT_EQ(checked_add(largest, smallest), -1);
}

TEST(CheckedMath, ReportsOverflow) {
  EXPECT_FALSE(checked_mul(largest, 2));
  EXPECT_FALSE(checked_mul(smallest, -1));
  EXPECT_FALSE(checked_add(largest, 1));
  EXPECT_FALSE(checked_add(smallest, -1));
}

}  // namespace
}  // namespace ferry
