// Random programs under every schedule of the device.
#include "random_program.hpp"

namespace ferry {
namespace {

using test::OnRandomPrograms;
using test::Program;

class RandomPrograms : public OnRandomPrograms {};

TEST_F(RandomPrograms, KeepMemoryOnLoanIntactForAThousandShuffles) {
  EXPECT_EQ(problems({.schedule = "shuffled"}, 1000), 0) << first_;
}

TEST_F(RandomPrograms, KeepMemoryOnLoanIntactHoweverLateTheDeviceIs) {
  EXPECT_EQ(problems({.schedule = "lazy", .steps = 80}, 100), 0) << first_;
}

TEST_F(RandomPrograms, KeepMemoryOnLoanIntactHoweverEarlyTheDeviceIs) {
  EXPECT_EQ(problems({.schedule = "eager", .steps = 80}, 100), 0) << first_;
}

TEST_F(RandomPrograms, KeepMemoryOnLoanIntactOnADeviceOfItsOwn) {
  EXPECT_EQ(problems({.schedule = "threaded", .steps = 80}, 50), 0) << first_;
}

TEST_F(RandomPrograms, KeepMemoryOnLoanIntactWithOtherFences) {
  EXPECT_EQ(problems({.schedule = "shuffled", .fence = Fence::context}, 200), 0) << first_;
  EXPECT_EQ(problems({.schedule = "shuffled", .fence = Fence::never}, 200), 0) << first_;
}

// Each rule that is switched off must show in some of the same programs.
struct Broken {
  Mutation mutation;
  const char* name;
};

class BrokenRules : public OnRandomPrograms, public ::testing::WithParamInterface<Broken> {};

TEST_P(BrokenRules, AreNoticed) {
  const test::Mutated mutated(GetParam().mutation);
  EXPECT_GT(problems({.schedule = "shuffled"}, 60) + problems({.schedule = "lazy", .steps = 80}, 20), 0);
  static_cast<void>(run({.schedule = "eager", .steps = 0}));  // a world without their violations
}

INSTANTIATE_TEST_SUITE_P(, BrokenRules,
                         ::testing::Values(Broken{Mutation::reuse_lease_early, "ReuseLeaseEarly"},
                                           Broken{Mutation::reuse_exposed_block, "ReuseExposedBlock"},
                                           Broken{Mutation::fence_without_foreign, "FenceWithoutForeign"},
                                           Broken{Mutation::ignore_hold, "IgnoreHold"}),
                         [](const auto& broken) { return std::string(broken.param.name); });

}  // namespace
}  // namespace ferry
