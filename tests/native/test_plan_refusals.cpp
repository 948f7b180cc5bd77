// What decide() refuses, and whether each refusal says what was given, why not, and what instead.
#include <string>

#include "plan_support.hpp"

namespace ferry {
namespace {

using test::named;
using test::packed_source;
using test::refusal;
using test::source_of;

constexpr std::int64_t huge = std::int64_t{1} << 61;

bool mentions(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

TEST(PlanRefusals, OfANeededCopyNameEveryCause) {
  TensorRef source = source_of(DType::float32, {3}, {4});
  source.negated = true;
  Request request = named(DType::float64);
  request.copy = CopyPolicy::never;
  const auto error = refusal(source, request);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::copy_required);
  EXPECT_EQ(error->given(), "a (3,) float32 tensor, copy=False");
  EXPECT_TRUE(mentions(error->why(), "negative bit") && mentions(error->why(), ", and the dtype changes"));
  EXPECT_TRUE(mentions(error->instead(), "copy=None"));
}

TEST(PlanRefusals, OfACopyComeTowardsTorchToo) {
  Request request = test::towards_torch();
  request.copy = CopyPolicy::never;
  const auto error = refusal(source_of(DType::int16, {3}, {-2}), request);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::copy_required);
  EXPECT_TRUE(mentions(error->why(), "negative strides"));
}

TEST(PlanRefusals, DoNotTouchWhatCanBeShared) {
  Request request;
  request.copy = CopyPolicy::never;
  EXPECT_EQ(decide(source_of(DType::float32, {3}, {-4}), request).path, Path::view);
  request.target = Target::torch;
  EXPECT_EQ(decide(packed_source(DType::float32, {3}), request).path, Path::view);
}

TEST(PlanRefusals, OfReadOnlyMemoryOfferTheTwoWaysOut) {
  TensorRef source = packed_source(DType::float32, {2, 2});
  source.read_only = true;
  const auto error = refusal(source, test::towards_torch(ReadOnlyPolicy::raise));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::read_only);
  EXPECT_EQ(error->given(), "a (2, 2) float32 tensor, readonly=\"raise\"");
  EXPECT_TRUE(mentions(error->why(), "always writable"));
  EXPECT_TRUE(mentions(error->instead(), "readonly=\"copy\"") && mentions(error->instead(), "readonly=\"share\""));
}

TEST(PlanRefusals, OfReadOnlyMemoryComeBeforeThoseOfACopy) {
  TensorRef source = packed_source(DType::float32, {2});
  source.read_only = true;
  Request request = test::towards_torch(ReadOnlyPolicy::raise);
  request.copy = CopyPolicy::never;
  EXPECT_EQ(refusal(source, request)->kind(), ErrorKind::read_only);
  request.read_only = ReadOnlyPolicy::copy;
  EXPECT_EQ(refusal(source, request)->kind(), ErrorKind::copy_required);
}

TEST(PlanRefusals, OfACastNameTheRuleAndLooserOnes) {
  const auto same_kind = refusal(packed_source(DType::float32, {3}), named(DType::int32));
  ASSERT_TRUE(same_kind);
  EXPECT_EQ(same_kind->kind(), ErrorKind::dtype);
  EXPECT_EQ(same_kind->given(), "a (3,) float32 tensor, dtype=int32, casting=\"same_kind\"");
  EXPECT_TRUE(mentions(same_kind->why(), "casting rule"));
  EXPECT_TRUE(mentions(same_kind->instead(), "casting=\"unsafe\""));
  EXPECT_TRUE(mentions(same_kind->instead(), "casting=\"same_value\""));
  for (const auto& [casting, name] :
       {std::pair{Casting::no, "\"no\""}, {Casting::equiv, "\"equiv\""}, {Casting::safe, "\"safe\""}}) {
    Request request = named(DType::float32);
    request.casting = casting;
    const auto error = refusal(packed_source(DType::float64, {3}), request);
    ASSERT_TRUE(error) << name;
    EXPECT_TRUE(mentions(error->given(), name)) << error->given();
    EXPECT_TRUE(mentions(error->instead(), "casting=\"same_kind\"")) << error->instead();
  }
}

TEST(PlanRefusals, OfBitsNameTheParts) {
  const auto error = refusal(packed_source(DType::complex128, {3}), test::choosing(DTypeChoice::bits));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::dtype);
  EXPECT_EQ(error->given(), "a (3,) complex128 tensor, dtype=\"bits\"");
  EXPECT_TRUE(mentions(error->why(), "16 bytes"));
  EXPECT_TRUE(mentions(error->instead(), "view_as_real"));
}

// Expanded tensors are as long as their shapes say without having the memory: a copy would need it.
TEST(PlanRefusals, OfCopiesLargerThanMemoryCanBe) {
  const TensorRef expanded = source_of(DType::uint8, {huge}, {0});
  EXPECT_EQ(decide(expanded, {}).path, Path::view);
  EXPECT_EQ(decide(expanded, named(DType::uint16)).nbytes_moved, std::int64_t{1} << 62);
  for (const Request& request : {named(DType::float32), named(DType::complex128)}) {
    const auto error = refusal(expanded, request);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::layout);
    EXPECT_EQ(error->given(), "a (2305843009213693952,) uint8 tensor");
    EXPECT_TRUE(mentions(error->why(), "64 bits"));
    EXPECT_TRUE(mentions(error->instead(), "part of it"));
  }
}

TEST(PlanRefusals, OfUnpackedShapesThatDoNotFit) {
  const auto error = refusal(source_of(DType::float4_e2m1fn_x2, {2 * huge}, {0}), {});
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::layout);
  EXPECT_TRUE(mentions(error->why(), "64 bits"));
}

TEST(PlanRefusals, DoNotCountTheExtentsOfEmptyShapes) {
  EXPECT_EQ(decide(source_of(DType::uint8, {0, huge, huge}, {1, 1, 1}), named(DType::float32)).nbytes_moved, 0);
}

}  // namespace
}  // namespace ferry
