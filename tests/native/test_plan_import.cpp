// What decide() chooses on the way to torch.
#include "plan_support.hpp"

namespace ferry {
namespace {

using test::bits_of;
using test::choosing;
using test::named;
using test::packed_source;
using test::source_of;
using test::towards_torch;

TEST(PlanToTorch, SharesAnOrdinaryArrayForWriting) {
  const Decision plan = decide(source_of(DType::float32, {2, 3}, {4, 8}), towards_torch());
  EXPECT_EQ(plan.path, Path::view);
  EXPECT_TRUE(plan.writable);
  EXPECT_EQ(plan.strides, (Extents{4, 8}));
  EXPECT_EQ(plan.nbytes_moved, 0);
}

TEST(PlanToTorch, StatesTheStridesThatTorchWillShowForAxesOfSizeOne) {
  EXPECT_EQ(decide(source_of(DType::float32, {2, 1, 3}, {12, 999, 4}), towards_torch()).strides, (Extents{12, 12, 4}));
  EXPECT_EQ(decide(source_of(DType::int8, {1}, {-3}), towards_torch()).strides, Extents{1});
  EXPECT_EQ(decide(source_of(DType::int16, {0, 4}, {2, 2}), towards_torch()).strides, (Extents{8, 2}));
}

TEST(PlanToTorch, CopiesWhatTorchCannotShow) {
  const struct {
    Extents shape;
    Extents strides;
    std::ptrdiff_t shift;
    std::initializer_list<Cause> causes;
  } cases[] = {
      {{3}, {-8}, 0, {Cause::negative_stride}},
      {{2, 2}, {32, 12}, 0, {Cause::misaligned}},
      {{2, 2}, {20, 8}, 0, {Cause::misaligned}},
      {{3}, {8}, 4, {Cause::misaligned}},
      {{3}, {-12}, 0, {Cause::negative_stride, Cause::misaligned}},
      {{3}, {0}, 0, {Cause::overlapping}},
      {{3, 3}, {8, 8}, 0, {Cause::overlapping}},
  };
  for (const auto& each : cases) {
    TensorRef source = source_of(DType::float64, each.shape, each.strides);
    source.data += each.shift;
    const Decision plan = decide(source, towards_torch());
    EXPECT_EQ(plan.path, Path::copy) << each.strides[0];
    EXPECT_EQ(bits_of(plan.causes), bits_of(each.causes)) << each.strides[0];
    EXPECT_TRUE(plan.writable);
  }
}

TEST(PlanToTorch, AlignsComplexNumbersByTheirPartsButCountsStridesInWholeOnes) {
  TensorRef source = source_of(DType::complex128, {3}, {16});
  source.data += 8;
  EXPECT_EQ(decide(source, towards_torch()).path, Path::view);
  source.layout.strides[0] = 24;
  EXPECT_EQ(bits_of(decide(source, towards_torch()).causes), bits_of({Cause::misaligned}));
}

TEST(PlanToTorch, IgnoresStridesThatNoAddressDependsOn) {
  EXPECT_EQ(decide(source_of(DType::float64, {1, 3}, {-5, 8}), towards_torch()).path, Path::view);
  EXPECT_EQ(decide(source_of(DType::float64, {0, 3}, {-5, 8}), towards_torch()).path, Path::view);
}

TEST(PlanToTorch, CopiesReadOnlyAndOverlappingMemoryUnlessSharingIsAllowed) {
  TensorRef source = source_of(DType::float32, {3, 2}, {0, 4});
  source.read_only = true;
  EXPECT_EQ(bits_of(decide(source, towards_torch()).causes), bits_of({Cause::read_only, Cause::overlapping}));
  const Decision shared = decide(source, towards_torch(ReadOnlyPolicy::share));
  EXPECT_EQ(shared.path, Path::view);
  EXPECT_EQ(shared.strides, (Extents{0, 4}));
}

TEST(PlanToTorch, SharesUnderRaiseWhatIsWritable) {
  EXPECT_EQ(decide(packed_source(DType::float32, {3}), towards_torch(ReadOnlyPolicy::raise)).path, Path::view);
}

TEST(PlanToTorch, MakesWritableCopiesWhoeverAskedForThem) {
  EXPECT_TRUE(decide(packed_source(DType::int32, {3}), named(DType::int64, Target::torch)).writable);
  Request request = towards_torch();
  request.copy = CopyPolicy::always;
  const Decision plan = decide(packed_source(DType::int32, {3}), request);
  EXPECT_TRUE(plan.writable);
  EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::requested}));
  EXPECT_EQ(plan.nbytes_moved, 12);
}

TEST(PlanToTorch, KeepsHalfComplexNumbersWhichTorchHas) {
  const TensorRef source = packed_source(DType::complex32, {3});
  EXPECT_EQ(decide(source, towards_torch()).result_dtype, DType::complex32);
  EXPECT_EQ(decide(source, towards_torch()).path, Path::view);
  const Decision native = decide(source, choosing(DTypeChoice::native, Target::torch));
  EXPECT_EQ(native.result_dtype, DType::complex64);
  EXPECT_EQ(bits_of(native.causes), bits_of({Cause::cast}));
}

TEST(PlanToTorch, LabelsBitsWithoutACopy) {
  const Decision plan = decide(packed_source(DType::bfloat16, {3}), choosing(DTypeChoice::bits, Target::torch));
  EXPECT_EQ(plan.path, Path::view);
  EXPECT_EQ(plan.result_dtype, DType::uint16);
}

}  // namespace
}  // namespace ferry
