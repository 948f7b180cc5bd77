// What decide() chooses on the way to NumPy.
#include "plan_support.hpp"

namespace ferry {
namespace {

using test::bits_of;
using test::choosing;
using test::named;
using test::packed_source;
using test::source_of;

TEST(Plan, SharesAnOrdinaryTensorReadOnlyAndMovesNothing) {
  const Decision plan = decide(source_of(DType::float32, {2, 3}, {24, 4}), {});
  EXPECT_EQ(plan.path, Path::view);
  EXPECT_TRUE(plan.shares_memory());
  EXPECT_FALSE(plan.writable);
  EXPECT_FALSE(plan.causes.any());
  EXPECT_EQ(plan.value_dtype, DType::float32);
  EXPECT_EQ(plan.result_dtype, DType::float32);
  EXPECT_EQ(plan.shape, (Extents{2, 3}));
  EXPECT_EQ(plan.strides, (Extents{24, 4}));
  EXPECT_EQ(plan.nbytes_moved, 0);
  EXPECT_FALSE(plan.checks_values);
}

TEST(Plan, SharesWhateverTheStridesAndMarksOfMemory) {
  const std::pair<Extents, Extents> layouts[] = {{{}, {}},         {{0}, {4}},       {{3, 1}, {-8, 77}},
                                                 {{4, 5}, {0, 0}}, {{2, 2}, {5, 9}}, {{2, 3}, {4, 8}}};
  for (const auto& [shape, strides] : layouts) {
    TensorRef source = source_of(DType::float32, shape, strides);
    source.read_only = true;
    const Decision plan = decide(source, {});
    EXPECT_EQ(plan.path, Path::view) << summary(source);
    EXPECT_EQ(plan.strides, strides) << summary(source);
  }
}

TEST(Plan, CopiesIntoPrivateWritableMemoryOnRequest) {
  Request request;
  request.copy = CopyPolicy::always;
  const Decision plan = decide(source_of(DType::float64, {2, 3}, {48, 16}), request);
  EXPECT_EQ(plan.path, Path::copy);
  EXPECT_FALSE(plan.shares_memory());
  EXPECT_TRUE(plan.writable);
  EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::requested}));
  EXPECT_EQ(plan.strides, (Extents{24, 8}));
  EXPECT_EQ(plan.nbytes_moved, 48);
}

TEST(Plan, HandsOutNeededCopiesReadOnly) {
  const Decision plan = decide(packed_source(DType::float32, {4}), named(DType::float64));
  EXPECT_EQ(plan.path, Path::copy);
  EXPECT_FALSE(plan.writable);
}

TEST(Plan, CopyOfATransposedTensorKeepsItsAxisOrder) {
  const TensorRef transposed = source_of(DType::float32, {2, 3, 4}, {4, 8, 24});
  Request request = named(DType::float64);
  EXPECT_EQ(decide(transposed, request).strides, (Extents{8, 16, 48}));
  request.order = Order::c;
  EXPECT_EQ(decide(transposed, request).strides, (Extents{96, 32, 8}));
  request.order = Order::fortran;
  EXPECT_EQ(decide(transposed, request).strides, (Extents{8, 16, 48}));
  request.order = Order::any;
  EXPECT_EQ(decide(transposed, request).strides, (Extents{8, 16, 48}));
}

TEST(Plan, CopiesForAnOrderThatTheSourceLacks) {
  const TensorRef transposed = source_of(DType::int16, {2, 3}, {2, 4});
  const std::pair<Order, bool> copies[] = {
      {Order::keep, false}, {Order::any, false}, {Order::fortran, false}, {Order::c, true}};
  for (const auto& [order, copied] : copies) {
    Request request;
    request.order = order;
    EXPECT_EQ(decide(transposed, request).path == Path::copy, copied) << static_cast<int>(order);
  }
}

TEST(Plan, MovesTheBytesOfTheResult) {
  EXPECT_EQ(decide(packed_source(DType::int8, {3, 5}), named(DType::complex128)).nbytes_moved, 240);
  EXPECT_EQ(decide(packed_source(DType::int8, {3, 0}), named(DType::complex128)).nbytes_moved, 0);
  EXPECT_EQ(decide(packed_source(DType::int8, {}), named(DType::int64)).nbytes_moved, 8);
  EXPECT_EQ(decide(source_of(DType::float32, {1000, 2}, {0, 4}), named(DType::float16)).nbytes_moved, 4000);
}

TEST(Plan, NativeDTypeIsAViewWhereNumPyHasTheTypeItself) {
  EXPECT_EQ(decide(packed_source(DType::float16, {3}), choosing(DTypeChoice::native)).path, Path::view);
  const Decision widened = decide(packed_source(DType::bfloat16, {3}), choosing(DTypeChoice::native));
  EXPECT_EQ(bits_of(widened.causes), bits_of({Cause::cast}));
  EXPECT_EQ(widened.value_dtype, DType::float32);
  EXPECT_EQ(widened.result_dtype, DType::float32);
  EXPECT_EQ(widened.nbytes_moved, 12);
}

TEST(Plan, BitsAreAViewUnderAnUnsignedLabel) {
  const std::pair<DType, DType> labels[] = {{DType::bool_, DType::uint8},      {DType::bfloat16, DType::uint16},
                                            {DType::float32, DType::uint32},   {DType::complex32, DType::uint32},
                                            {DType::complex64, DType::uint64}, {DType::int4, DType::uint8}};
  for (const auto& [dtype, label] : labels) {
    const Decision plan = decide(packed_source(dtype, {2, 3}), choosing(DTypeChoice::bits));
    EXPECT_EQ(plan.path, Path::view) << info(dtype).name;
    EXPECT_EQ(plan.value_dtype, dtype);
    EXPECT_EQ(plan.result_dtype, label) << info(dtype).name;
    EXPECT_EQ(plan.shape, (Extents{2, 3}));
  }
}

TEST(Plan, BitsOfAMarkedTensorAreThoseOfItsValues) {
  TensorRef source = packed_source(DType::complex64, {3});
  source.conjugated = true;
  const Decision plan = decide(source, choosing(DTypeChoice::bits));
  EXPECT_EQ(plan.path, Path::copy);
  EXPECT_EQ(plan.value_dtype, DType::complex64);
  EXPECT_EQ(plan.result_dtype, DType::uint64);
  EXPECT_EQ(plan.nbytes_moved, 24);
}

TEST(Plan, WidensHalfComplexNumbersWithoutAskingTheCastingRule) {
  const TensorRef source = packed_source(DType::complex32, {3});
  for (Request request : {Request{}, named(DType::complex64), choosing(DTypeChoice::native)}) {
    request.casting = Casting::no;
    const Decision plan = decide(source, request);
    EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::widen}));
    EXPECT_EQ(plan.result_dtype, DType::complex64);
    EXPECT_EQ(plan.nbytes_moved, 24);
  }
  EXPECT_EQ(bits_of(decide(source, named(DType::complex128)).causes), bits_of({Cause::cast}));
}

TEST(Plan, ChecksValuesOnlyWhenTheyCouldChange) {
  Request request = named(DType::int8);
  request.casting = Casting::same_value;
  EXPECT_TRUE(decide(packed_source(DType::float32, {3}), request).checks_values);
  EXPECT_FALSE(decide(packed_source(DType::int8, {3}), request).checks_values);
  request.dtype = DType::complex64;
  EXPECT_FALSE(decide(packed_source(DType::complex32, {3}), request).checks_values);
  request = choosing(DTypeChoice::bits);
  request.casting = Casting::same_value;
  EXPECT_FALSE(decide(packed_source(DType::float32, {3}), request).checks_values);
}

TEST(Plan, FillsADestinationThatMayBeWrittenTo) {
  Request request;
  request.into_destination = true;
  const Decision plan = decide(packed_source(DType::uint8, {5}), request);
  EXPECT_EQ(plan.path, Path::copy);
  EXPECT_TRUE(plan.writable);
  EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::destination}));
  EXPECT_EQ(plan.nbytes_moved, 5);
}

TEST(Plan, SnapshotsLazilyWhereTheMemoryAllowsIt) {
  Request request;
  request.copy = CopyPolicy::lazy;
  request.lazy_possible = true;
  const TensorRef source = source_of(DType::float32, {2, 3}, {-12, 4});
  const Decision lazy = decide(source, request);
  EXPECT_EQ(lazy.path, Path::lazy);
  EXPECT_TRUE(lazy.shares_memory());
  EXPECT_FALSE(lazy.writable);
  EXPECT_EQ(lazy.strides, source.layout.strides);
  EXPECT_EQ(lazy.nbytes_moved, 0);
}

TEST(Plan, SnapshotsByACopyWhereTheMemoryDoesNotAllowLaziness) {
  Request request;
  request.copy = CopyPolicy::lazy;
  const TensorRef source = packed_source(DType::float32, {2, 3});
  const Decision held = decide(source, request);
  EXPECT_EQ(held.path, Path::copy);
  EXPECT_EQ(bits_of(held.causes), bits_of({Cause::held}));
  EXPECT_FALSE(held.writable);
  EXPECT_EQ(held.nbytes_moved, 24);
  request.lazy_possible = true;
  request.order = Order::fortran;
  EXPECT_EQ(bits_of(decide(source, request).causes), bits_of({Cause::order}));
}

TEST(Plan, HandsOutPrivateMemoryWithoutAnotherCopy) {
  Request request;
  request.private_memory = true;
  const TensorRef source = packed_source(DType::float32, {2, 3});
  for (const auto& [policy, writable] :
       {std::pair{CopyPolicy::if_needed, false}, {CopyPolicy::always, true}, {CopyPolicy::lazy, false}}) {
    request.copy = policy;
    const Decision plan = decide(source, request);
    EXPECT_EQ(plan.path, Path::view);
    EXPECT_EQ(plan.writable, writable);
  }
}

TEST(Plan, NeverHandsOutOverlappingPrivateMemoryForWriting) {
  Request request;
  request.private_memory = true;
  const TensorRef expanded = source_of(DType::float32, {4, 3}, {0, 4});
  EXPECT_EQ(decide(expanded, request).path, Path::view);
  request.copy = CopyPolicy::always;
  const Decision plan = decide(expanded, request);
  EXPECT_EQ(plan.path, Path::copy);
  EXPECT_EQ(bits_of(plan.causes), bits_of({Cause::overlapping}));
  EXPECT_TRUE(plan.writable);
  EXPECT_EQ(plan.nbytes_moved, 48);
}

TEST(Plan, ReachesFromEveryDTypeToEveryOtherUnderUnsafe) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    for (std::size_t j = 0; j < dtype_count; ++j) {
      const auto from = static_cast<DType>(i);
      const auto to = static_cast<DType>(j);
      if (from == to || info(to).elements_per_item == 2 || info(from).elements_per_item == 2) continue;
      Request request = named(to);
      request.casting = Casting::unsafe;
      const Decision plan = decide(packed_source(from, {2, 4}), request);
      EXPECT_EQ(plan.path, Path::copy) << info(from).name << " to " << info(to).name;
      EXPECT_EQ(plan.value_dtype, to);
      EXPECT_EQ(plan.result_dtype, to);
      EXPECT_EQ(plan.nbytes_moved, 8 * info(to).itemsize);
    }
  }
}

}  // namespace
}  // namespace ferry
