#include <gtest/gtest.h>

#include <set>

#include "../support.hpp"
#include "transfer/moves.hpp"

namespace ferry {
namespace {

using test::Random;

Layout layout(Extents shape, Extents strides, std::int64_t itemsize = 4) { return {shape, strides, itemsize}; }

std::vector<Move> moves(const Layout& source, const Layout& destination, std::size_t most = 64) {
  const auto found = moves_between(source, destination, most);
  EXPECT_TRUE(found);
  return found.value_or(std::vector<Move>{});
}

TEST(Moves, OfTwoPackedTensorsAreOneRow) {
  const Layout packed = layout({3, 4, 5}, {80, 20, 4});
  EXPECT_EQ(moves(packed, packed), (std::vector<Move>{{0, 0, 240, 1, 0, 0}}));
}

TEST(Moves, OfEqualDenseLayoutsAreOneRowInAnyOrderOfTheAxes) {
  const Layout transposed = layout({3, 4, 5}, {4, 12, 48});
  EXPECT_EQ(moves(transposed, transposed), (std::vector<Move>{{0, 0, 240, 1, 0, 0}}));
}

TEST(Moves, OfAScalarAreOneRow) {
  EXPECT_EQ(moves(layout({}, {}), layout({}, {})), (std::vector<Move>{{0, 0, 4, 1, 0, 0}}));
  EXPECT_EQ(moves(layout({1, 1}, {999, -5}), layout({1, 1}, {0, 7})), (std::vector<Move>{{0, 0, 4, 1, 0, 0}}));
}

TEST(Moves, OfNothingAreNone) { EXPECT_EQ(moves(layout({3, 0}, {4, 4}), layout({3, 0}, {4, 4})).size(), 0U); }

TEST(Moves, OfEqualRowsAtAFixedStepAreOne) {
  const Layout pitched = layout({10, 6}, {32, 4});
  const Layout packed = layout({10, 6}, {24, 4});
  EXPECT_EQ(moves(pitched, packed), (std::vector<Move>{{0, 0, 24, 10, 32, 24}}));
  EXPECT_EQ(moves(packed, pitched), (std::vector<Move>{{0, 0, 24, 10, 24, 32}}));
}

TEST(Moves, OfAnAxisThatRunsBackwardsInBothTurnItRound) {
  const Layout backwards = layout({6}, {-4});
  EXPECT_EQ(moves(backwards, backwards), (std::vector<Move>{{-20, -20, 24, 1, 0, 0}}));
}

TEST(Moves, OfRowsInReverseOrderGoOneByOne) {
  const std::vector<Move> found = moves(layout({3, 2}, {8, 4}), layout({3, 2}, {-8, 4}));
  EXPECT_EQ(found, (std::vector<Move>{{16, -16, 8, 1, 0, 0}, {8, -8, 8, 1, 0, 0}, {0, 0, 8, 1, 0, 0}}));
}

TEST(Moves, NeverTakeRowsThatOverlap) {
  const Layout window = layout({5, 3}, {4, 4});  // a sliding window
  const std::vector<Move> found = moves(window, layout({5, 3}, {12, 4}));
  ASSERT_EQ(found.size(), 5U);
  for (const Move& move : found) EXPECT_EQ(move.rows, 1);
}

TEST(Moves, NeverTakeAPitchThatTheDriverRefuses) {
  const std::int64_t far = std::int64_t{3} << 30;
  const std::vector<Move> found = moves(layout({4, 2}, {far, 4}), layout({4, 2}, {8, 4}));
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[3], (Move{3 * far, 24, 8, 1, 0, 0}));
}

TEST(Moves, TakeTheLongestAxisAsRows) {
  const std::vector<Move> found = moves(layout({2, 100, 3}, {4096, 16, 4}), layout({2, 100, 3}, {1200, 12, 4}));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1], (Move{4096, 1200, 12, 100, 16, 12}));
}

TEST(Moves, BeyondTheLimitAreNothing) {
  const Layout source = layout({8, 8, 8}, {4, 32, 256});
  const Layout destination = layout({8, 8, 8}, {256, 32, 4});
  EXPECT_FALSE(moves_between(source, destination, 63));
  EXPECT_TRUE(moves_between(source, destination, 64));
  EXPECT_FALSE(moves_between(layout({1 << 30, 1 << 30, 1 << 30}, {0, 0, 0}),
                             layout({1 << 30, 1 << 30, 1 << 30}, {1L << 62, 1L << 32, 4}), 1000));
}

// What the moves do to bytes, by plain loops.
void carry_out(const std::vector<Move>& all, std::byte* destination, const std::byte* source) {
  for (const Move& move : all) {
    for (std::int64_t row = 0; row < move.rows; ++row) {
      for (std::int64_t i = 0; i < move.width_nbytes; ++i) {
        destination[move.destination_offset + row * move.destination_pitch + i] =
            source[move.source_offset + row * move.source_pitch + i];
      }
    }
  }
}

TEST(Moves, OfRandomLayoutsMoveEveryElement) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Extents shape = test::random_shape(random, static_cast<int>(random.between(0, 5)));
    test::Strided source = test::random_strided(random, DType::uint16, shape);
    const test::Strided destination = test::random_strided(random, DType::uint16, shape);
    if (shape.size() > 0 && random.between(0, 3) == 0) {
      source.ref.layout.strides[static_cast<int>(random.between(0, shape.size() - 1))] = 0;
    }
    std::vector<std::byte> wanted = destination.memory;
    const std::int64_t start = destination.ref.data - destination.memory.data();
    for (std::int64_t flat = 0; flat < element_count(shape).value(); ++flat) {
      std::memcpy(wanted.data() + start + test::offset_of(destination.ref.layout, flat),
                  source.ref.data + test::offset_of(source.ref.layout, flat), 2);
    }
    const auto all = moves_between(source.ref.layout, destination.ref.layout, 100000);
    ASSERT_TRUE(all);
    for (const Move& move : *all) {
      if (move.rows > 1) {
        EXPECT_GE(move.source_pitch, move.width_nbytes);
        EXPECT_GE(move.destination_pitch, move.width_nbytes);
      }
    }
    std::vector<Move> parts;
    for (const Move& move : *all) {
      for (const Move& part : chunks_of(move, random.between(1, 40))) parts.push_back(part);
    }
    carry_out(parts, destination.ref.data, source.ref.data);
    ASSERT_EQ(destination.memory, wanted);
  }
}

TEST(Chunks, OfARowAreAtMostSoLong) {
  const std::vector<Move> parts = chunks_of({100, 7, 10, 1, 0, 0}, 4);
  EXPECT_EQ(parts, (std::vector<Move>{{100, 7, 4, 1, 0, 0}, {104, 11, 4, 1, 0, 0}, {108, 15, 2, 1, 0, 0}}));
}

TEST(Chunks, OfManyRowsAreWholeRows) {
  const std::vector<Move> parts = chunks_of({0, 0, 10, 5, 16, 10}, 25);
  EXPECT_EQ(parts, (std::vector<Move>{{0, 0, 10, 2, 16, 10}, {32, 20, 10, 2, 16, 10}, {64, 40, 10, 1, 0, 0}}));
}

TEST(Chunks, OfRowsThatAreTooWideAreParts) {
  const std::vector<Move> parts = chunks_of({0, 0, 6, 2, 8, 6}, 4);
  EXPECT_EQ(parts,
            (std::vector<Move>{{0, 0, 4, 1, 0, 0}, {4, 4, 2, 1, 0, 0}, {8, 6, 4, 1, 0, 0}, {12, 10, 2, 1, 0, 0}}));
}

}  // namespace
}  // namespace ferry
