// Runs a test once for every processor level that this machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "host/kernels/kernels.hpp"

namespace ferry::test {

class KernelTest : public ::testing::TestWithParam<const Kernels*> {
 protected:
  [[nodiscard]] static const Kernels& level() { return *GetParam(); }
};

inline std::vector<const Kernels*> levels_here() {
  const KernelLevels found = kernel_levels();
  return {found.levels.begin(), found.levels.begin() + found.count};
}

inline std::string name_of_level(const ::testing::TestParamInfo<const Kernels*>& param) {
  return std::string(param.param->level);
}

}  // namespace ferry::test

#define FERRY_FOR_EACH_LEVEL(Suite)                                                         \
  INSTANTIATE_TEST_SUITE_P(Level, Suite, ::testing::ValuesIn(::ferry::test::levels_here()), \
                           ::ferry::test::name_of_level)
