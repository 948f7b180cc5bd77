#include <gtest/gtest.h>

#include "core/error.hpp"
#include "transfer/arrival.hpp"

namespace ferry {
namespace {

Layout layout(Extents shape, Extents strides, std::int64_t itemsize = 4) { return {shape, strides, itemsize}; }

TEST(Arrival, OfADenseTensorIsOneBlockWithTheSameStrides) {
  const Arrival arrival = arrival_of(layout({3, 5}, {4, 12}), true, true);
  EXPECT_TRUE(arrival.as_block);
  EXPECT_FALSE(arrival.packs);
  EXPECT_EQ(arrival.nbytes, 60);
  EXPECT_EQ(arrival.strides, (Extents{4, 12}));
  EXPECT_EQ(arrival.data_offset, 0);
}

TEST(Arrival, OfABackwardsAxisBeginsAtTheLowestByte) {
  const Arrival arrival = arrival_of(layout({4}, {-8}, 8), false, true);
  EXPECT_TRUE(arrival.as_block);
  EXPECT_EQ(arrival.source_offset, -24);
  EXPECT_EQ(arrival.data_offset, 24);
  EXPECT_EQ(arrival.nbytes, 32);
  EXPECT_EQ(arrival.strides, (Extents{-8}));
}

TEST(Arrival, OfARepeatedElementBringsItOnce) {
  const Arrival arrival = arrival_of(layout({1000, 3}, {0, 4}), true, true);
  EXPECT_EQ(arrival.nbytes, 12);
  EXPECT_EQ(arrival.strides, (Extents{0, 4}));
}

TEST(Arrival, OfOverlappingWindowsBringsTheirBytesOnce) {
  const Arrival arrival = arrival_of(layout({8, 3}, {4, 4}), true, true);
  EXPECT_TRUE(arrival.as_block);
  EXPECT_EQ(arrival.nbytes, 40);
  EXPECT_EQ(arrival.strides, (Extents{4, 4}));
}

TEST(Arrival, OfHolesIsPackedByTheProducerInItsAxisOrder) {
  const Arrival arrival = arrival_of(layout({3, 5}, {8, 48}), true, true);
  EXPECT_TRUE(arrival.packs);
  EXPECT_EQ(arrival.nbytes, 60);
  EXPECT_EQ(arrival.strides, (Extents{4, 12}));
}

TEST(Arrival, OfWideRowsNeedsNoPackingWhereTheHostWaits) {
  const Layout rows = layout({10, 1024}, {8192, 4});
  EXPECT_FALSE(arrival_of(rows, true, true).packs);
  EXPECT_TRUE(arrival_of(rows, true, false).packs);
  EXPECT_EQ(arrival_of(rows, true, true).strides, (Extents{4096, 4}));
}

TEST(Arrival, OfNarrowOrCrookedRowsIsPacked) {
  EXPECT_TRUE(arrival_of(layout({10, 1008}, {8192, 4}), true, true).packs);
  EXPECT_TRUE(arrival_of(layout({10, 1024}, {4104, 4}), true, true).packs);
}

TEST(Arrival, WithoutAPackingProducerGoesByRows) {
  const Arrival arrival = arrival_of(layout({3, 5}, {48, 8}), false, true);
  EXPECT_FALSE(arrival.packs);
  EXPECT_FALSE(arrival.as_block);
  EXPECT_EQ(arrival.nbytes, 60);
  EXPECT_EQ(arrival.strides, (Extents{20, 4}));
}

TEST(Arrival, OfTooManyRowsTakesTheHolesAlong) {
  const Arrival arrival = arrival_of(layout({100, 100, 100}, {90000, 880, 8}), false, true);
  EXPECT_TRUE(arrival.as_block);
  EXPECT_EQ(arrival.strides, (Extents{90000, 880, 8}));
}

TEST(Arrival, RefusesElementsThatLieTooFarApart) {
  const Layout scattered = layout({100, 100, 100}, {9000000, 88000, 800});
  EXPECT_THROW(static_cast<void>(arrival_of(scattered, false, true)), Error);
  EXPECT_TRUE(arrival_of(scattered, true, true).packs);
}

TEST(Arrival, OfNothingTakesNoMemory) {
  EXPECT_EQ(arrival_of(layout({3, 0}, {4, 4}), true, true).nbytes, 0);
  EXPECT_EQ(arrival_of(layout({}, {}), true, true).nbytes, 4);
}

}  // namespace
}  // namespace ferry
