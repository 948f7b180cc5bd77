#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "core/extents.hpp"

namespace ferry {
namespace {

TEST(Extents, StartEmpty) {
  const Extents none{};
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.begin(), none.end());
}

TEST(Extents, AreFilledWithOneValue) {
  EXPECT_EQ(Extents(3), (Extents{0, 0, 0}));
  EXPECT_EQ(Extents(2, -7), (Extents{-7, -7}));
  EXPECT_EQ(Extents(0, 5), Extents{});
}

TEST(Extents, TakeTheValuesOfASpan) {
  const std::vector<std::int64_t> values{4, 0, -1};
  const Extents extents{std::span<const std::int64_t>(values)};
  EXPECT_EQ(std::vector<std::int64_t>(extents.begin(), extents.end()), values);
}

TEST(Extents, HoldAsManyAxesAsNumPyAllows) {
  std::vector<std::int64_t> values(64);
  std::iota(values.begin(), values.end(), 100);
  const Extents extents{std::span<const std::int64_t>(values)};
  EXPECT_EQ(extents.size(), 64);
  EXPECT_EQ(extents[63], 163);
  const Extents copied = extents;
  EXPECT_EQ(copied, extents);
}

TEST(Extents, CompareSizesAndValues) {
  EXPECT_EQ((Extents{1, 2}), (Extents{1, 2}));
  EXPECT_FALSE((Extents{1, 2}) == (Extents{2, 1}));
  EXPECT_FALSE((Extents{1, 2}) == (Extents{1, 2, 3}));
  EXPECT_FALSE(Extents{} == Extents{0});
}

TEST(Extents, CopiesAreIndependent) {
  const Extents original{1, 2, 3};
  Extents assigned{9};
  assigned = original;
  assigned[0] = 7;
  assigned.push_back(4);
  EXPECT_EQ(assigned, (Extents{7, 2, 3, 4}));
  EXPECT_EQ(original, (Extents{1, 2, 3}));
}

TEST(Extents, SurviveAssignmentToThemselves) {
  Extents extents{5, 6};
  const Extents& same = extents;
  extents = same;
  EXPECT_EQ(extents, (Extents{5, 6}));
}

TEST(Extents, KeepLeadingValuesWhenTheyShrink) {
  Extents extents{5, 6, 7};
  extents.resize(2);
  EXPECT_EQ(extents, (Extents{5, 6}));
  extents.data()[1] = 8;
  EXPECT_EQ(extents[1], 8);
}

}  // namespace
}  // namespace ferry
