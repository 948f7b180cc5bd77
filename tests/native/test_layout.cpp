#include <gtest/gtest.h>

#include <map>

#include "core/layout.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::offset_of;
using test::Random;

constexpr std::int64_t huge = std::int64_t{1} << 40;

TEST(ElementCount, MultipliesAndReportsWhatDoesNotFit) {
  EXPECT_EQ(element_count(Extents{}), 1);
  EXPECT_EQ(element_count(Extents{3, 4, 5}), 60);
  EXPECT_FALSE(element_count(Extents{huge, huge}));
  EXPECT_FALSE(element_count(Extents{2, -1}));
}

TEST(ElementCount, IsZeroWhateverTheOtherExtentsAre) { EXPECT_EQ(element_count(Extents{huge, huge, 0}), 0); }

TEST(ContiguousStrides, FollowTheOrder) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}, 8), (Extents{96, 32, 8}));
  EXPECT_EQ(contiguous_strides({2, 3, 4}, 8, Order::fortran), (Extents{8, 16, 48}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}, 8), (Extents{32, 32, 8}));
}

TEST(ContiguousStrides, SurviveHugeExtentsOfAnEmptyShape) {
  EXPECT_EQ(contiguous_strides({0, huge, huge}, 8).size(), 3);
  EXPECT_EQ(packed_strides(Layout{{0, huge, huge}, {8, 8, 8}, 8}, Order::keep, 8).size(), 3);
}

TEST(Contiguity, IgnoresAxesOfSizeOne) {
  const Layout layout{{1, 3, 1}, {999, 4, -7}, 4};
  EXPECT_TRUE(is_c_contiguous(layout));
  EXPECT_TRUE(is_f_contiguous(layout));
}

TEST(Contiguity, TellsTheTwoOrdersApart) {
  const Layout c{{2, 3}, {12, 4}, 4};
  const Layout f{{2, 3}, {4, 8}, 4};
  EXPECT_TRUE(is_c_contiguous(c) && !is_f_contiguous(c));
  EXPECT_TRUE(is_f_contiguous(f) && !is_c_contiguous(f));
  EXPECT_TRUE(satisfies(c, Order::c) && !satisfies(c, Order::fortran) && satisfies(f, Order::any));
}

TEST(Pitch, FindsRowsOfASlice) {
  const auto found = pitch(Layout{{5, 3}, {40, 4}, 4});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rows, 5);
  EXPECT_EQ(found->row_nbytes, 12);
  EXPECT_EQ(found->step, 40);
  EXPECT_FALSE(pitch(Layout{{5, 3}, {40, 8}, 4}));
}

TEST(PackedStrides, KeepTheOrderOfTheAxes) {
  const Layout transposed{{2, 3, 4}, {4, 8, 48}, 4};  // axes 2, 1, 0 from slow to fast, with a gap
  EXPECT_EQ(packed_strides(transposed, Order::keep, 2), (Extents{2, 4, 12}));
  EXPECT_EQ(packed_strides(transposed, Order::c, 2), (Extents{24, 8, 2}));
  EXPECT_EQ(packed_strides(transposed, Order::fortran, 2), (Extents{2, 4, 12}));
}

TEST(ElementStrides, CountItemsInsteadOfBytes) {
  EXPECT_EQ(element_strides({{2, 3}, {24, 4}, 4}), (Extents{6, 1}));
  EXPECT_EQ(element_strides({{2, 3}, {8, -16}, 8}), (Extents{1, -2}));
  EXPECT_EQ(element_strides({{4, 3}, {0, 2}, 2}), (Extents{0, 1}));
  EXPECT_EQ(element_strides({{}, {}, 8}), Extents{});
}

TEST(ElementStrides, ReplaceThoseThatNoAddressDependsOn) {
  EXPECT_EQ(element_strides({{2, 1, 3}, {12, 999, 4}, 4}), (Extents{3, 3, 1}));
  EXPECT_EQ(element_strides({{1}, {-5}, 4}), Extents{1});
  EXPECT_EQ(element_strides({{2, 1, 3}, {48, 7, 8}, 4}), (Extents{12, 6, 2}));
  EXPECT_EQ(element_strides({{2, 0, 3}, {1, 1, 1}, 4}), (Extents{3, 3, 1}));
}

TEST(ElementStrides, SurviveHugeExtentsOfAnEmptyShape) {
  EXPECT_EQ(element_strides({{0, huge, huge}, {8, 8, 8}, 8})[2], 1);
}

// Every element's offset, counted: the oracle of the laws below.
std::map<std::int64_t, int> visits(const Layout& layout) {
  std::map<std::int64_t, int> counts;
  const std::int64_t count = element_count(layout.shape).value();
  for (std::int64_t flat = 0; flat < count; ++flat) ++counts[offset_of(layout, flat)];
  return counts;
}

TEST(LayoutLaws, AgreeWithCountedOffsets) {
  Random random(20240611);
  for (int round = 0; round < 3000; ++round) {
    const int ndim = static_cast<int>(random.between(0, 4));
    Layout layout{Extents(ndim), Extents(ndim), 1};
    for (int axis = 0; axis < ndim; ++axis) {
      layout.shape[axis] = random.between(1, 4);
      layout.strides[axis] = random.between(-12, 12);
    }
    const auto offsets = visits(layout);
    const std::int64_t low = offsets.begin()->first;
    const std::int64_t high = offsets.rbegin()->first + 1;
    EXPECT_EQ(span(layout).low, low);
    EXPECT_EQ(span(layout).high, high);
    const auto count = element_count(layout.shape).value();
    const bool distinct = static_cast<std::int64_t>(offsets.size()) == count;
    EXPECT_EQ(is_dense(layout), distinct && high - low == count);
    EXPECT_TRUE(distinct || may_overlap_itself(layout));
  }
}

}  // namespace
}  // namespace ferry
