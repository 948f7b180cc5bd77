// Which casts go by packed runs; that they are right is for test_carry.cpp to say, but for the ends of runs.
#include <gtest/gtest.h>

#include <vector>

#include "host/kernels/kernels.hpp"
#include "host/packed_runs.hpp"
#include "support.hpp"

namespace ferry {
namespace {

// int16 to float64, or float64 to int16. Strides are counted in items.
struct Cast {
  Extents shape;
  Extents to_strides;
  Extents from_strides;
};

std::int64_t reach(const Extents& shape, const Extents& strides) {
  std::int64_t last = 0;
  for (int axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * strides[axis];
  return last + 1;
}

Extents times(Extents strides, std::size_t itemsize) {
  for (int axis = 0; axis < strides.size(); ++axis) strides[axis] *= static_cast<std::int64_t>(itemsize);
  return strides;
}

// Was it carried out? If so, every value has to be there, and what lies between them untouched.
template <class To, class From>
bool is_packed(const Cast& cast, DType to, DType from) {
  std::vector<From> source(static_cast<std::size_t>(reach(cast.shape, cast.from_strides)));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<From>(i % 30'011);
  std::vector<To> result(static_cast<std::size_t>(reach(cast.shape, cast.to_strides)), To{-1});
  std::vector<To> expected = result;
  const std::int64_t count = element_count(cast.shape).value();
  for (std::int64_t flat = 0; flat < count; ++flat) {
    const auto to_at = static_cast<std::size_t>(test::offset_of({cast.shape, cast.to_strides, 1}, flat));
    const auto from_at = static_cast<std::size_t>(test::offset_of({cast.shape, cast.from_strides, 1}, flat));
    expected[to_at] = static_cast<To>(source[from_at]);
  }
  const Extents to_strides = times(cast.to_strides, sizeof(To));
  const Extents from_strides = times(cast.from_strides, sizeof(From));
  const Walk<2> walk(cast.shape, {&to_strides, &from_strides},
                     {reinterpret_cast<std::byte*>(result.data()), reinterpret_cast<std::byte*>(source.data())},
                     WalkOrder::fastest);
  const bool carried = carry_packed(walk, sizeof(To), sizeof(From), [=] { return kernels().cast(to, from); });
  EXPECT_EQ(result == expected, carried);
  return carried;
}

bool widens(const Cast& cast) { return is_packed<double, std::int16_t>(cast, DType::float64, DType::int16); }
bool narrows(const Cast& cast) { return is_packed<std::int16_t, double>(cast, DType::int16, DType::float64); }

TEST(PackedRuns, TakesShortRowsOfTheSource) {
  const Cast pitched{{3001, 7}, {7, 1}, {9, 1}};
  EXPECT_TRUE(widens(pitched));
  EXPECT_TRUE(narrows(pitched));
}

TEST(PackedRuns, CutsTheRunThatIsTooLongWhereverItEnds) {
  for (const std::int64_t rows : {1, 9, 10, 584, 585, 586, 1171, 4096}) {  // of 7 float64, 585 fill the scratch
    EXPECT_EQ(widens({{3, rows, 7}, {rows * 7, 7, 1}, {rows * 9 + 5, 9, 1}}), rows * 7 * 3 >= 64) << rows;
  }
}

TEST(PackedRuns, KeepsToRunsOfADestinationWithGaps) {
  EXPECT_TRUE(widens({{50, 20, 7}, {150, 7, 1}, {200, 9, 1}}));
  EXPECT_FALSE(widens({{50, 20, 7}, {170, 8, 1}, {200, 9, 1}}));  // runs of 7
}

TEST(PackedRuns, LeavesLongRowsAndColumnsToOthers) {
  EXPECT_FALSE(widens({{50, 64}, {64, 1}, {80, 1}}));
  const Cast columns{{500, 3}, {3, 1}, {1, 500}};
  EXPECT_TRUE(widens(columns));  // the smaller values are transposed
  EXPECT_FALSE(narrows(columns));
}

}  // namespace
}  // namespace ferry
