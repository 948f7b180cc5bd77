// Packed float4, two elements an item, in both directions.
#include "plan_support.hpp"

namespace ferry {
namespace {

using test::bits_of;
using test::choosing;
using test::named;
using test::packed_source;
using test::source_of;

constexpr DType packed = DType::float4_e2m1fn_x2;
constexpr DType unpacked = DType::float4_e2m1fn;

TEST(PlanPacked, UnpacksAlongTheLastAxisTowardsNumPy) {
  for (const Request& request : {Request{}, named(unpacked)}) {
    const Decision plan = decide(packed_source(packed, {3, 4}), request);
    EXPECT_EQ(plan.path, Path::copy);
    EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::unpack}));
    EXPECT_EQ(plan.value_dtype, unpacked);
    EXPECT_EQ(plan.result_dtype, unpacked);
    EXPECT_EQ(plan.shape, (Extents{3, 8}));
    EXPECT_EQ(plan.strides, (Extents{8, 1}));
    EXPECT_EQ(plan.nbytes_moved, 24);
  }
}

TEST(PlanPacked, UnpacksAndCastsInOnePass) {
  const Decision plan = decide(packed_source(packed, {3, 4}), named(DType::float32));
  EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::unpack, Cause::cast}));
  EXPECT_EQ(plan.shape, (Extents{3, 8}));
  EXPECT_EQ(plan.strides, (Extents{32, 4}));
  EXPECT_EQ(plan.nbytes_moved, 96);
  EXPECT_EQ(decide(packed_source(packed, {3, 4}), choosing(DTypeChoice::native)).result_dtype, DType::float16);
}

TEST(PlanPacked, UnpacksIntoTheOrderAskedFor) {
  Request request;
  request.order = Order::fortran;
  EXPECT_EQ(decide(packed_source(packed, {3, 4}), request).strides, (Extents{1, 3}));
  request.order = Order::keep;
  EXPECT_EQ(decide(source_of(packed, {3, 4}, {1, 3}), request).strides, (Extents{8, 1}));
}

TEST(PlanPacked, ShowsItemsAsBytes) {
  for (const Target target : {Target::numpy, Target::torch}) {
    const Decision plan = decide(packed_source(packed, {3, 4}), choosing(DTypeChoice::bits, target));
    EXPECT_EQ(plan.path, Path::view);
    EXPECT_EQ(plan.value_dtype, packed);
    EXPECT_EQ(plan.result_dtype, DType::uint8);
    EXPECT_EQ(plan.shape, (Extents{3, 4}));
  }
}

TEST(PlanPacked, StaysPackedTowardsTorch) {
  const Decision plan = decide(packed_source(packed, {3, 4}), test::towards_torch());
  EXPECT_EQ(plan.path, Path::view);
  EXPECT_EQ(plan.result_dtype, packed);
  EXPECT_EQ(plan.shape, (Extents{3, 4}));
}

TEST(PlanPacked, PacksPairsAlongTheLastAxisTowardsTorch) {
  for (const DType from : {unpacked, DType::float32}) {
    const Decision plan = decide(packed_source(from, {3, 8}), named(packed, Target::torch));
    EXPECT_EQ(plan.path, Path::copy) << info(from).name;
    EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::pack})) << info(from).name;
    EXPECT_EQ(plan.value_dtype, packed);
    EXPECT_EQ(plan.result_dtype, packed);
    EXPECT_EQ(plan.shape, (Extents{3, 4}));
    EXPECT_EQ(plan.strides, (Extents{4, 1}));
    EXPECT_EQ(plan.nbytes_moved, 12);
    EXPECT_TRUE(plan.writable);
  }
}

TEST(PlanPacked, UnpacksTowardsTorchByACast) {
  const Decision plan = decide(packed_source(packed, {3, 4}), named(DType::float32, Target::torch));
  EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::cast}));
  EXPECT_EQ(plan.shape, (Extents{3, 8}));
  EXPECT_EQ(plan.nbytes_moved, 96);
}

TEST(PlanPacked, AppliesTheCastingRuleToTheElements) {
  Request request = named(packed, Target::torch);
  request.casting = Casting::safe;
  EXPECT_EQ(decide(packed_source(unpacked, {4}), request).path, Path::copy);
  EXPECT_TRUE(test::refusal(packed_source(DType::float32, {4}), request));
  request.casting = Casting::same_value;
  EXPECT_TRUE(decide(packed_source(DType::float32, {4}), request).checks_values);
  EXPECT_FALSE(decide(packed_source(unpacked, {4}), request).checks_values);
}

TEST(PlanPacked, LeavesEmptyAxesEmpty) {
  EXPECT_EQ(decide(packed_source(packed, {3, 0}), {}).shape, (Extents{3, 0}));
  EXPECT_EQ(decide(packed_source(packed, {0, 3}), {}).shape, (Extents{0, 6}));
  EXPECT_EQ(decide(packed_source(DType::float32, {2, 0}), named(packed, Target::torch)).nbytes_moved, 0);
}

TEST(PlanPacked, RefusesAnOddLastAxis) {
  const auto error = test::refusal(packed_source(DType::float32, {4, 3}), named(packed, Target::torch));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::layout);
  EXPECT_EQ(error->given(), "a (4, 3) float32 tensor");
  EXPECT_NE(error->why().find("last axis"), std::string::npos);
  EXPECT_NE(error->instead().find("even length"), std::string::npos);
}

TEST(PlanPacked, RefusesAScalarWhichHasNoAxisForTheTwoElements) {
  for (const auto& [from, request] : {std::pair{packed, Request{}}, {DType::float32, named(packed, Target::torch)}}) {
    const auto error = test::refusal(packed_source(from, {}), request);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::layout);
    EXPECT_NE(error->why().find("no axis"), std::string::npos);
    EXPECT_NE(error->instead().find("reshape(1)"), std::string::npos);
  }
}

TEST(PlanPacked, SharesAScalarThatStaysPacked) {
  EXPECT_EQ(decide(packed_source(packed, {}), test::towards_torch()).path, Path::view);
  EXPECT_EQ(decide(packed_source(packed, {}), choosing(DTypeChoice::bits)).path, Path::view);
}

}  // namespace
}  // namespace ferry
