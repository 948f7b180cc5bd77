// The pure functions that cut copies: for the ring, for staging, at the borders of registrations.
#include <gtest/gtest.h>

#include "../support.hpp"
#include "transfer/pinned_pieces.hpp"
#include "transfer/ring_chunks.hpp"
#include "transfer/staged_moves.hpp"

namespace ferry {
namespace {

using test::Random;

void carry_out(const std::vector<Move>& all, std::byte* destination, const std::byte* source) {
  for (const Move& move : all) {
    for (std::int64_t row = 0; row < move.rows; ++row) {
      std::memcpy(destination + move.destination_offset + row * move.destination_pitch,
                  source + move.source_offset + row * move.source_pitch, static_cast<std::size_t>(move.width_nbytes));
    }
  }
}

// Element by element, as the layouts are defined.
void copy_elements(const Layout& to_layout, std::byte* to, const Layout& from_layout, const std::byte* from) {
  for (std::int64_t flat = 0; flat < element_count(to_layout.shape).value(); ++flat) {
    std::memcpy(to + test::offset_of(to_layout, flat), from + test::offset_of(from_layout, flat),
                static_cast<std::size_t>(to_layout.itemsize));
  }
}

test::Strided random_source(Random& random, const Extents& shape) {
  test::Strided source = test::random_strided(random, DType::float32, shape);
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (random.between(0, 4) == 0) source.ref.layout.strides[axis] = 0;
  }
  return source;
}

TEST(RingChunks, OfRandomLayoutsBringEveryElementToTheHost) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Extents shape = test::random_shape(random, static_cast<int>(random.between(0, 5)));
    const test::Strided source = random_source(random, shape);
    const test::Strided got = test::random_strided(random, DType::float32, shape);
    test::Strided wanted{got.memory, got.ref};
    wanted.ref.data = wanted.memory.data() + (got.ref.data - got.memory.data());
    copy_elements(wanted.ref.layout, wanted.ref.data, source.ref.layout, source.ref.data);
    const std::int64_t most = random.between(4, 200);
    const auto chunks = ring_chunks(source.ref.layout, got.ref.layout, most, RingWay::to_host);
    ASSERT_TRUE(chunks);
    for (const RingChunk& chunk : *chunks) {
      ASSERT_LE(chunk.landing_nbytes, most);
      std::vector<std::byte> piece(static_cast<std::size_t>(chunk.landing_nbytes));
      carry_out(chunk.moves, piece.data(), source.ref.data + chunk.device_offset);
      copy_elements(chunk.host, got.ref.data + chunk.host_offset, chunk.landing, piece.data());
    }
    ASSERT_EQ(got.memory, wanted.memory);
  }
}

TEST(RingChunks, OfRandomLayoutsBringEveryElementToTheDevice) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Extents shape = test::random_shape(random, static_cast<int>(random.between(0, 5)));
    const test::Strided source = random_source(random, shape);
    const test::Strided got = test::random_strided(random, DType::float32, shape);
    test::Strided wanted{got.memory, got.ref};
    wanted.ref.data = wanted.memory.data() + (got.ref.data - got.memory.data());
    copy_elements(wanted.ref.layout, wanted.ref.data, source.ref.layout, source.ref.data);
    const auto chunks = ring_chunks(got.ref.layout, source.ref.layout, random.between(4, 200), RingWay::to_device);
    ASSERT_TRUE(chunks);
    for (const RingChunk& chunk : *chunks) {
      std::vector<std::byte> piece(static_cast<std::size_t>(chunk.landing_nbytes));
      copy_elements(chunk.landing, piece.data(), chunk.host, source.ref.data + chunk.host_offset);
      carry_out(chunk.moves, got.ref.data + chunk.device_offset, piece.data());
    }
    ASSERT_EQ(got.memory, wanted.memory);
  }
}

TEST(RingChunks, OfADenseTensorAreOneCopyEach) {
  const Layout transposed{{64, 256}, {4, 256}, 4};
  const auto chunks = ring_chunks(transposed, {{64, 256}, {1024, 4}, 4}, 16384, RingWay::to_host);
  ASSERT_TRUE(chunks);
  ASSERT_EQ(chunks->size(), 4U);
  for (const RingChunk& chunk : *chunks) EXPECT_EQ(chunk.moves, (std::vector<Move>{{0, 0, 16384, 1, 0, 0}}));
}

TEST(RingChunks, OfRepeatedElementsBringThemOnce) {
  const auto chunks = ring_chunks({{1000, 4}, {0, 4}, 4}, {{1000, 4}, {16, 4}, 4}, 4096, RingWay::to_host);
  ASSERT_TRUE(chunks);
  ASSERT_EQ(chunks->size(), 1U);
  EXPECT_EQ(chunks->front().landing_nbytes, 16);
}

TEST(RingChunks, OfEverySecondElementComeWithTheHolesBetween) {
  const auto chunks = ring_chunks({{5000}, {8}, 4}, {{5000}, {4}, 4}, 1 << 20, RingWay::to_host);
  ASSERT_TRUE(chunks);
  ASSERT_EQ(chunks->size(), 1U);
  EXPECT_EQ(chunks->front().moves, (std::vector<Move>{{0, 0, 39996, 1, 0, 0}}));
}

TEST(RingChunks, OfManyElementsFarApartAreNothing) {
  const Layout far{{50, 50, 50}, {4000, 200000, 10000000}, 4};
  const Layout packed{{50, 50, 50}, {10000, 200, 4}, 4};
  EXPECT_FALSE(ring_chunks({{50, 50, 50}, {-4000, 200000, 10000000}, 4}, packed, 100, RingWay::to_device) &&
               ring_chunks(far, packed, 100, RingWay::to_device)->empty());
  const Layout scattered{{2000, 3, 2}, {100, 1000003, 5000011}, 1};
  EXPECT_FALSE(ring_chunks(Layout{{40, 40, 40}, {7, 7001, 7000001}, 1}, Layout{{40, 40, 40}, {1600, 40, 1}, 1}, 1 << 20,
                           RingWay::to_device));
  EXPECT_TRUE(ring_chunks(scattered, {{2000, 3, 2}, {6, 2, 1}, 1}, 1 << 20, RingWay::to_host));
}

TEST(StagedMoves, OfRandomLayoutsBringEveryElement) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Extents shape = test::random_shape(random, static_cast<int>(random.between(0, 5)));
    const test::Strided source = random_source(random, shape);
    const test::Strided got = test::random_strided(random, DType::float32, shape);
    test::Strided wanted{got.memory, got.ref};
    wanted.ref.data = wanted.memory.data() + (got.ref.data - got.memory.data());
    copy_elements(wanted.ref.layout, wanted.ref.data, source.ref.layout, source.ref.data);
    const auto moves = staged_moves(source.ref.layout, got.ref.layout, 100000);
    ASSERT_TRUE(moves);
    std::vector<std::byte> slot(static_cast<std::size_t>(element_count(shape).value() * 4));
    carry_out(moves->into, slot.data(), source.ref.data);
    carry_out(moves->out_of, got.ref.data, slot.data());
    ASSERT_EQ(got.memory, wanted.memory);
  }
}

TEST(StagedMoves, OfADenseTensorAreOneEachWay) {
  const Layout transposed{{64, 32}, {4, 256}, 4};
  const auto moves = staged_moves(transposed, transposed, 16);
  ASSERT_TRUE(moves);
  EXPECT_EQ(moves->into, (std::vector<Move>{{0, 0, 8192, 1, 0, 0}}));
  EXPECT_EQ(moves->out_of, (std::vector<Move>{{0, 0, 8192, 1, 0, 0}}));
}

TEST(StagedMoves, OfAPitchedTensorPackItOnTheDevice) {
  const auto moves = staged_moves({{10, 6}, {32, 4}, 4}, {{10, 6}, {24, 4}, 4}, 16);
  ASSERT_TRUE(moves);
  EXPECT_EQ(moves->into, (std::vector<Move>{{0, 0, 24, 10, 32, 24}}));
  EXPECT_EQ(moves->out_of, (std::vector<Move>{{0, 0, 240, 1, 0, 0}}));
}

TEST(StagedMoves, BeyondTheLimitAreNothing) {
  EXPECT_FALSE(staged_moves({{8, 8}, {4, 32}, 4}, {{8, 8}, {-32, 4}, 4}, 7));
}

// Registrations of `unit` bytes each, from address 0 of the block on.
std::vector<Move> cut_at(const std::vector<Move>& moves, HostEnd end, std::int64_t unit, const std::byte* host) {
  return inside_registrations(moves, end, host, [&](const std::byte* data, std::size_t nbytes) {
    return std::min<std::size_t>(nbytes, static_cast<std::size_t>(unit - (data - host) % unit));
  });
}

TEST(PinnedPieces, OfARowEndAtTheBorders) {
  const std::byte host[64]{};
  EXPECT_EQ(cut_at({{100, 5, 20, 1, 0, 0}}, HostEnd::destination, 10, host),
            (std::vector<Move>{{100, 5, 5, 1, 0, 0}, {105, 10, 10, 1, 0, 0}, {115, 20, 5, 1, 0, 0}}));
}

TEST(PinnedPieces, OfManyRowsStayTogetherBetweenTheBorders) {
  const std::byte host[64]{};
  EXPECT_EQ(cut_at({{0, 0, 4, 5, 100, 8}}, HostEnd::destination, 22, host),
            (std::vector<Move>{{0, 0, 4, 3, 100, 8}, {300, 24, 4, 2, 100, 8}}));
  EXPECT_EQ(
      cut_at({{0, 0, 4, 3, 8, 100}}, HostEnd::source, 10, host),
      (std::vector<Move>{{0, 0, 4, 1, 0, 0}, {8, 100, 2, 1, 0, 0}, {10, 102, 2, 1, 0, 0}, {16, 200, 4, 1, 0, 0}}));
}

TEST(PinnedPieces, OfRandomMovesCoverTheSameBytes) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const std::int64_t width = random.between(1, 12);
    const std::int64_t rows = random.between(1, 6);
    const Move move{
        3, 2, width, rows, rows == 1 ? 0 : width + random.between(0, 4), rows == 1 ? 0 : width + random.between(0, 4)};
    std::vector<std::byte> source(200);
    for (std::byte& byte : source) byte = static_cast<std::byte>(random.bits());
    std::vector<std::byte> wanted(200);
    std::vector<std::byte> got(200);
    carry_out({move}, wanted.data(), source.data());
    const std::int64_t unit = random.between(1, 30);
    const std::vector<Move> parts = cut_at({move}, HostEnd::destination, unit, got.data());
    carry_out(parts, got.data(), source.data());
    ASSERT_EQ(got, wanted);
    for (const Move& part : parts) {
      const std::int64_t last = part.destination_offset + (part.rows - 1) * part.destination_pitch + part.width_nbytes;
      ASSERT_EQ(part.destination_offset / unit, (last - 1) / unit);
    }
  }
}

}  // namespace
}  // namespace ferry
