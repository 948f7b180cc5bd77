#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "host/pool/aligned_memory.hpp"
#include "host/pool/block.hpp"

namespace ferry {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

bool is_aligned_to(const std::byte* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

TEST(Block, CostsTheRequestRoundedUp) {
  EXPECT_EQ(block_nbytes(0), 64U);
  EXPECT_EQ(block_nbytes(1), 64U);
  EXPECT_EQ(block_nbytes(65), 128U);
  EXPECT_EQ(block_nbytes(64 * KiB - 64), 64 * KiB - 64);
  EXPECT_EQ(block_nbytes(64 * KiB - 63), 64 * KiB);
  EXPECT_EQ(block_nbytes(64 * KiB + 1), 68 * KiB);
  EXPECT_EQ(block_nbytes(64 * MiB - 1), 64 * MiB);
  EXPECT_EQ(block_nbytes(64 * MiB), 64 * MiB);
  EXPECT_EQ(block_nbytes(64 * MiB + 1), 66 * MiB);
  EXPECT_THROW(static_cast<void>(block_nbytes(std::numeric_limits<std::size_t>::max())), std::bad_alloc);
}

TEST(Block, RoundingWhatIsRoundedChangesNothing) {
  for (std::size_t nbytes = 1; nbytes < 200 * MiB; nbytes = nbytes * 9 / 8 + 1) {
    EXPECT_EQ(block_nbytes(block_nbytes(nbytes)), block_nbytes(nbytes)) << nbytes;
  }
}

TEST(Block, IsAlignedToACacheLineAndFrom2MiBOnToAHugePage) {
  for (std::size_t nbytes : {std::size_t{1}, 1000 * std::size_t{1}, 8 * KiB, 64 * KiB, 1 * MiB, 2 * MiB, 5 * MiB + 7}) {
    const Block block(nbytes);
    EXPECT_TRUE(is_aligned_to(block.data(), nbytes >= 2 * MiB ? 2 * MiB : 64)) << nbytes;
    std::memset(block.data(), 1, block.nbytes());
    EXPECT_EQ(block.data()[block.nbytes() - 1], std::byte{1});
  }
}

TEST(Block, AWishForHugePagesKeepsWhatIsThere) {
  std::vector<std::byte> memory(7 * MiB, std::byte{5});
  for (std::size_t first : {std::size_t{0}, std::size_t{1}, 3 * MiB + 77}) {
    for (std::size_t nbytes : {std::size_t{0}, std::size_t{1}, 2 * MiB - 1, 4 * MiB - 80}) {
      prefer_huge_pages(memory.data() + first, nbytes);
    }
  }
  EXPECT_EQ(memory, std::vector<std::byte>(7 * MiB, std::byte{5}));
}

TEST(Block, MovesItsMemoryAlong) {
  Block block(64 * KiB);
  std::byte* data = block.data();
  const Block moved(std::move(block));
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.nbytes(), 64 * KiB);
}

TEST(AlignedMemory, IsAlignedAndKeepsItsBytesWhenResized) {
  for (std::size_t nbytes = 1; nbytes < 5000; nbytes += 97) {
    std::byte* data = aligned_new(nbytes);
    ASSERT_TRUE(is_aligned_to(data, 64)) << nbytes;
    for (std::size_t i = 0; i < nbytes; ++i) data[i] = static_cast<std::byte>(i * 7);
    const std::size_t larger = nbytes * 40;
    data = aligned_resize(data, larger);
    ASSERT_TRUE(is_aligned_to(data, 64)) << nbytes;
    for (std::size_t i = 0; i < nbytes; ++i) ASSERT_EQ(data[i], static_cast<std::byte>(i * 7));
    std::memset(data, 0, larger);
    data = aligned_resize(data, 1);
    ASSERT_EQ(data[0], std::byte{0});
    aligned_delete(data);
  }
}

TEST(AlignedMemory, SaysWhenThereIsNone) {
  constexpr std::size_t too_much = std::numeric_limits<std::size_t>::max() - 8;
  EXPECT_EQ(aligned_new(too_much), nullptr);
  std::byte* data = aligned_new(3);
  data[2] = std::byte{9};
  EXPECT_EQ(aligned_resize(data, too_much), nullptr);
  EXPECT_EQ(data[2], std::byte{9});
  aligned_delete(data);
  aligned_delete(nullptr);
}

}  // namespace
}  // namespace ferry
