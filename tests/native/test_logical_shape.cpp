#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"
#include "host/logical_shape.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::tensor;

TEST(LogicalShape, DoublesTheLastAxisOfPackedPairs) {
  EXPECT_EQ(logical_shape(tensor(nullptr, DType::float4_e2m1fn_x2, {3, 5}, {5, 1})), (Extents{3, 10}));
  EXPECT_EQ(logical_shape(tensor(nullptr, DType::float4_e2m1fn, {3, 5}, {5, 1})), (Extents{3, 5}));
}

TEST(LogicalShape, RefusesPackedTensorsThatCannotUnpack) {
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  for (const Extents& shape : {Extents{}, Extents{largest}}) {
    try {
      (void)logical_shape(tensor(nullptr, DType::float4_e2m1fn_x2, shape, shape));
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::layout);
      EXPECT_NE(error.given().find("float4_e2m1fn_x2"), std::string::npos);
    }
  }
}

TEST(CommonShape, NamesBothShapesWhenTheyDiffer) {
  try {
    (void)common_shape(tensor(nullptr, DType::int8, {2, 3}, {3, 1}), tensor(nullptr, DType::int8, {6}, {1}));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::layout);
    EXPECT_NE(error.given().find("(2, 3)"), std::string::npos);
    EXPECT_NE(error.given().find("(6,)"), std::string::npos);
  }
}

}  // namespace
}  // namespace ferry
