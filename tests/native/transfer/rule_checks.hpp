// For each ordering rule a little story that shows when it is broken.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/mutation.hpp"

namespace ferry::test {

struct RuleCheck {
  const char* name;
  Mutation mutation;
  // What was wrong; nothing when the rule was kept.
  std::string (*run)(const char* schedule, std::uint32_t seed);
};

[[nodiscard]] const std::vector<RuleCheck>& rule_checks();
[[nodiscard]] const std::vector<RuleCheck>& kernel_rule_checks();

}  // namespace ferry::test
