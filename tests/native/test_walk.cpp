#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "host/walk.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::offset_of;
using test::Random;
using test::random_shape;
using test::random_strided;
using test::Strided;

using Offsets = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Offsets of both operands' elements in the order in which the walk reaches them.
Offsets walked(const TensorRef& a, const TensorRef& b, WalkOrder order) {
  const Walk<2> walk(a.layout.shape, {&a.layout.strides, &b.layout.strides}, {a.data, b.data}, order);
  Offsets offsets;
  walk.for_each_row([&](const auto& rows) {
    for (std::int64_t i = 0; i < walk.row_extent(); ++i) {
      offsets.emplace_back(rows[0] - a.data + i * walk.row_steps()[0], rows[1] - b.data + i * walk.row_steps()[1]);
    }
    return true;
  });
  return offsets;
}

Offsets in_c_order(const TensorRef& a, const TensorRef& b) {
  Offsets offsets;
  const std::int64_t count = element_count(a.layout.shape).value();
  for (std::int64_t flat = 0; flat < count; ++flat) {
    offsets.emplace_back(offset_of(a.layout, flat), offset_of(b.layout, flat));
  }
  return offsets;
}

TEST(Walk, ReachesEachPairOnceInAnyOrder) {
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 5)));
    const Strided a = random_strided(random, DType::int16, shape);
    const Strided b = random_strided(random, DType::int32, shape);
    const Offsets expected = in_c_order(a.ref, b.ref);
    EXPECT_EQ(walked(a.ref, b.ref, WalkOrder::c_order), expected);
    const Offsets fast = walked(a.ref, b.ref, WalkOrder::fastest);
    EXPECT_EQ(fast.size(), expected.size());
    EXPECT_EQ(std::set(fast.begin(), fast.end()), std::set(expected.begin(), expected.end()));
    if (shape.empty()) continue;
    EXPECT_EQ(walked(a.ref, b.ref, WalkOrder::c_order_keep_last), expected);
    const Offsets kept = walked(a.ref, b.ref, WalkOrder::fastest_keep_last);
    EXPECT_EQ(kept.size(), expected.size());
    EXPECT_EQ(std::set(kept.begin(), kept.end()), std::set(expected.begin(), expected.end()));
  }
}

std::int64_t row_extent(const Extents& shape, const Extents& strides, WalkOrder order) {
  std::vector<std::byte> memory(4096);
  std::byte* middle = memory.data() + 2048;
  return Walk<2>(shape, {&strides, &strides}, {middle, middle}, order).row_extent();
}

TEST(Walk, MergesADenseBlockToOneRowWhateverItsAxes) {
  EXPECT_EQ(row_extent({2, 3, 4}, {48, 16, 4}, WalkOrder::c_order), 24);
  EXPECT_EQ(row_extent({2, 3, 4}, {4, 8, 24}, WalkOrder::fastest), 24);
  EXPECT_EQ(row_extent({2, 1, 3, 4}, {-48, 7, 16, -4}, WalkOrder::fastest), 24);
  EXPECT_EQ(row_extent({2, 3, 4}, {96, 16, 4}, WalkOrder::fastest), 12);
}

TEST(Walk, KeepsTheLastAxisAsTheRow) {
  EXPECT_EQ(row_extent({2, 3, 4}, {48, 16, 4}, WalkOrder::fastest_keep_last), 4);
  EXPECT_EQ(row_extent({2, 3, 1}, {4, 8, 4}, WalkOrder::c_order_keep_last), 1);
}

TEST(Walk, StopsWhenTheVisitorSaysSo) {
  std::vector<std::byte> memory(64);
  const Extents strides{16, 1};
  const Walk<1> walk({4, 3}, {&strides}, {memory.data()}, WalkOrder::c_order);
  int rows = 0;
  walk.for_each_row([&](const auto&) { return ++rows < 2; });
  EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace ferry
