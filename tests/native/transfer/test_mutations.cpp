// Every rule is kept on every schedule, and its check notices when it is switched off.
#include <iostream>
#include <set>

#include "rule_checks.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

struct Schedules {
  const char* kind;
  std::uint32_t seeds;
};
constexpr Schedules schedules[] = {{"lazy", 4}, {"eager", 4}, {"shuffled", 1000}, {"threaded", 12}};
constexpr std::uint32_t seeds_with_mutation = 40;

class Mutations : public ::testing::TestWithParam<RuleCheck> {};

TEST_P(Mutations, FindNothingWhereTheRuleIsKept) {
  std::set<std::uint64_t> orders;
  for (const auto& [kind, seeds] : schedules) {
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
      ASSERT_EQ(GetParam().run(kind, seed), "") << kind << " seed " << seed;
      orders.insert(cuda::test::fake<std::uint64_t()>("fake_order")());
    }
  }
  RecordProperty("distinct_orders", static_cast<int>(orders.size()));
}

TEST_P(Mutations, AreNoticedWhereItIsSwitchedOff) {
  const Mutated mutated(GetParam().mutation);
  std::string noticed;
  for (const auto& [kind, seeds] : schedules) {
    int failures = 0;
    const std::uint32_t count = std::min(seeds, seeds_with_mutation);
    for (std::uint32_t seed = 0; seed < count; ++seed) failures += GetParam().run(kind, seed).empty() ? 0 : 1;
    if (failures > 0) noticed += std::string(kind) + " " + std::to_string(failures) + "/" + std::to_string(count) + " ";
  }
  EXPECT_NE(noticed, "") << GetParam().name;
  RecordProperty("noticed", noticed);
  std::cout << GetParam().name << " switched off was noticed: " << noticed << "\n";
}

INSTANTIATE_TEST_SUITE_P(KernelRules, Mutations, ::testing::ValuesIn(kernel_rule_checks()),
                         [](const auto& param) { return std::string(param.param.name); });
INSTANTIATE_TEST_SUITE_P(Rules, Mutations, ::testing::ValuesIn(rule_checks()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace ferry::test
