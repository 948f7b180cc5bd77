// The time that measuring a link may take, by a clock of the test's own.
#include "../support.hpp"
#include "transfer/measuring_time.hpp"

namespace ferry::test {
namespace {

using std::chrono::milliseconds;

class TimeForMeasuring : public ::testing::Test {
 protected:
  Clock::time_point now{};
  MeasuringTime time{[this] { return now; }};
  int attempts = 0;

  // Each attempt takes so long.
  std::vector<double> step(milliseconds each) {
    return time.step([&] {
      ++attempts;
      now += each;
    });
  }
};

TEST_F(TimeForMeasuring, AStepGoesOnForTenMillisecondsAndLeavesTheFirstAttemptOut) {
  EXPECT_EQ(step(milliseconds(1)), std::vector<double>(9, 0.001));
  EXPECT_EQ(attempts, 10);
}

TEST_F(TimeForMeasuring, SlowAttemptsAreMadeTwice) {
  EXPECT_EQ(step(milliseconds(15)), std::vector<double>(1, 0.015));
  EXPECT_EQ(attempts, 2);
}

TEST_F(TimeForMeasuring, ThereAreTwentyWholeSteps) {
  int steps = 0;
  for (; time.has_step(); ++steps) static_cast<void>(step(milliseconds(1)));
  EXPECT_EQ(steps, 20);
  EXPECT_DOUBLE_EQ(time.seconds(), 0.2);
}

TEST_F(TimeForMeasuring, NoStepBeginsThatCannotEndInTime) {
  now += milliseconds(191);
  EXPECT_FALSE(time.has_step());
}

TEST_F(TimeForMeasuring, AfterSlowAttemptsMoreTimeIsKeptForAStep) {
  static_cast<void>(step(milliseconds(15)));
  now += milliseconds(140);
  EXPECT_TRUE(time.has_step());
  now += milliseconds(1);
  EXPECT_FALSE(time.has_step());
}

TEST(Median, IsTheValueInTheMiddle) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({5, 1, 3}), 3);
  EXPECT_EQ(median({9, 1}), 9);
}

}  // namespace
}  // namespace ferry::test
