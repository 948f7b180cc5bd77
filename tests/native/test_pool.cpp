#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "host/pool/pool.hpp"
#include "support.hpp"

namespace ferry {
namespace {

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t without_limit = std::numeric_limits<std::size_t>::max();

TEST(Pool, LendsWhatCameBackToTheNextOfItsSize) {
  Pool pool(without_limit);
  std::byte* first = nullptr;
  {
    const Lease lease = pool.lease(100 * KiB);
    first = lease.data();
  }
  const Lease again = pool.lease(100 * KiB);
  EXPECT_EQ(again.data(), first);
}

TEST(Pool, LendsNoBlockTwice) {
  Pool pool(without_limit);
  const Lease one = pool.lease(64 * KiB), two = pool.lease(64 * KiB);
  EXPECT_NE(one.data(), two.data());
}

TEST(Pool, ReusesABlockThatWastesOneEighthOfTheRequestAndNoLargerOne) {
  Pool pool(without_limit);
  std::byte* nine = pool.lease(9 * MiB).data();
  EXPECT_EQ(pool.lease(8 * MiB).data(), nine);
  const Lease smaller = pool.lease(8 * MiB - 4 * KiB);
  EXPECT_EQ(smaller.capacity(), 8 * MiB - 4 * KiB);
  EXPECT_EQ(pool.stats().hits, 1U);
}

TEST(Pool, ChoosesTheSmallestBlockThatFits) {
  Pool pool(without_limit);
  std::optional<Lease> large(pool.lease(1088 * KiB)), fitting(pool.lease(1040 * KiB)), small(pool.lease(1020 * KiB));
  const std::byte* expected = fitting->data();
  fitting.reset();
  small.reset();
  large.reset();
  EXPECT_EQ(pool.lease(1024 * KiB).data(), expected);
}

TEST(Pool, LendsTheWarmestOfEqualBlocks) {
  Pool pool(without_limit);
  std::optional<Lease> one(pool.lease(1 * MiB)), two(pool.lease(1 * MiB)), other(pool.lease(2 * MiB));
  const std::byte *first = one->data(), *second = two->data();
  two.reset();
  one.reset();
  other.reset();
  EXPECT_EQ(pool.lease(1 * MiB).data(), first);
  const Lease held = pool.lease(1 * MiB);
  EXPECT_EQ(pool.lease(1 * MiB).data(), second);
}

TEST(Pool, CountsAsHandCounted) {
  Pool pool(3 * MiB);
  PoolStats expected{.limit_nbytes = 3 * MiB};
  EXPECT_EQ(pool.stats(), expected);
  {
    const Lease a = pool.lease(1 * MiB), b = pool.lease(2 * MiB - 1);
    expected = {.in_use_nbytes = 3 * MiB,
                .in_use_blocks = 2,
                .limit_nbytes = 3 * MiB,
                .high_water_nbytes = 3 * MiB,
                .misses = 2};
    EXPECT_EQ(pool.stats(), expected);
  }
  expected = {
      .idle_nbytes = 3 * MiB, .idle_blocks = 2, .limit_nbytes = 3 * MiB, .high_water_nbytes = 3 * MiB, .misses = 2};
  EXPECT_EQ(pool.stats(), expected);
  {
    const Lease a = pool.lease(1 * MiB), b = pool.lease(1 * MiB);  // the second cannot waste 1 MiB
    expected = {.in_use_nbytes = 2 * MiB,
                .in_use_blocks = 2,
                .idle_nbytes = 2 * MiB,
                .idle_blocks = 1,
                .limit_nbytes = 3 * MiB,
                .high_water_nbytes = 4 * MiB,
                .hits = 1,
                .misses = 3};
    EXPECT_EQ(pool.stats(), expected);
  }
  expected = {.idle_nbytes = 2 * MiB,
              .idle_blocks = 2,
              .limit_nbytes = 3 * MiB,
              .high_water_nbytes = 4 * MiB,
              .hits = 1,
              .misses = 3,
              .trims = 1};  // the 2 MiB that were idle for longest
  EXPECT_EQ(pool.stats(), expected);
}

TEST(Pool, GivesBackWhatWasUnusedForLongest) {
  Pool pool(2 * MiB);
  std::optional<Lease> first(pool.lease(1 * MiB)), second(pool.lease(1 * MiB)), third(pool.lease(1 * MiB));
  const std::byte *kept = second->data(), *kept_too = third->data();
  first.reset();
  second.reset();
  third.reset();
  const Lease a = pool.lease(1 * MiB), b = pool.lease(1 * MiB);
  EXPECT_EQ(a.data(), kept_too);
  EXPECT_EQ(b.data(), kept);
}

TEST(Pool, ABlockLargerThanTheLimitLeavesTheOthersAlone) {
  Pool pool(2 * MiB);
  {
    const Lease small = pool.lease(1 * MiB);
  }
  {
    const Lease large = pool.lease(3 * MiB);
  }
  EXPECT_EQ(pool.stats().idle_nbytes, 1 * MiB);
  EXPECT_EQ(pool.stats().trims, 1U);
}

TEST(Pool, KeepsNothingWithALimitOfZero) {
  Pool pool(0);
  {
    const Lease lease = pool.lease(64);
  }
  EXPECT_EQ(pool.stats().idle_blocks, 0U);
  EXPECT_EQ(pool.stats().trims, 1U);
}

TEST(Pool, TrimsToWhatIsToBeKept) {
  Pool pool(without_limit);
  {
    const Lease a = pool.lease(1 * MiB), b = pool.lease(2 * MiB), c = pool.lease(4 * MiB);
  }  // c is returned first
  EXPECT_EQ(pool.trim(7 * MiB), 0U);
  EXPECT_EQ(pool.trim(5 * MiB), 4 * MiB);
  EXPECT_EQ(pool.stats().idle_nbytes, 3 * MiB);
  EXPECT_EQ(pool.trim(0), 3 * MiB);
  EXPECT_EQ(pool.stats().idle_blocks, 0U);
  EXPECT_EQ(pool.stats().trims, 3U);
}

TEST(Pool, ANewLimitHoldsAtOnceAndTellsTheOldOne) {
  Pool pool(8 * MiB);
  {
    const Lease a = pool.lease(1 * MiB), b = pool.lease(2 * MiB);
  }
  EXPECT_EQ(pool.set_limit(1 * MiB), 8 * MiB);
  EXPECT_EQ(pool.stats().idle_nbytes, 1 * MiB);
  EXPECT_EQ(pool.set_limit(without_limit), 1 * MiB);
}

TEST(Pool, RefusesWhatTheSystemCannotGiveAndStaysUsable) {
  Pool pool(without_limit);
  {
    const Lease lease = pool.lease(1 * MiB);
  }
  EXPECT_THROW(static_cast<void>(pool.lease(std::size_t{1} << 60)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(pool.lease(without_limit)), std::bad_alloc);
  const PoolStats stats = pool.stats();
  EXPECT_EQ(stats.in_use_nbytes, 0U);
  EXPECT_EQ(pool.lease(1 * MiB).nbytes(), 1 * MiB);
}

TEST(Pool, AMovedLeaseReturnsItsBlockOnce) {
  Pool pool(without_limit);
  {
    Lease lease = pool.lease(64 * KiB);
    const Lease taken = std::move(lease);
    EXPECT_EQ(pool.stats().in_use_blocks, 1U);
    EXPECT_EQ(taken.nbytes(), 64 * KiB);
  }
  EXPECT_EQ(pool.stats().idle_blocks, 1U);
}

// Random leases of random sizes, each filled with a pattern of its own, which must still be there when it ends.
TEST(Pool, NoLeaseReachesAnothersMemory) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    test::Random random(seed);
    Pool pool(static_cast<std::size_t>(random.between(0, 4)) * MiB);
    std::deque<std::pair<Lease, unsigned char>> held;
    const auto end = [&] {
      const auto& [lease, pattern] = held.front();
      std::vector<std::byte> expected(lease.nbytes(), std::byte{pattern});
      ASSERT_EQ(std::memcmp(lease.data(), expected.data(), expected.size()), 0);
      held.pop_front();
    };
    std::size_t in_use = 0, peak = 0;
    for (int i = 0; i < 300; ++i) {
      const auto pattern = static_cast<unsigned char>(random.between(0, 255));
      const auto nbytes = static_cast<std::size_t>(std::int64_t{1} << random.between(3, 18)) +
                          static_cast<std::size_t>(random.between(0, 5000));
      held.emplace_back(pool.lease(nbytes), pattern);
      const Lease& lease = held.back().first;
      ASSERT_GE(lease.capacity(), nbytes);
      ASSERT_LE(lease.capacity() - block_nbytes(nbytes), block_nbytes(nbytes) / 8);
      std::memset(lease.data(), pattern, nbytes);
      while (!held.empty() && random.between(0, 2) == 0) end();
      in_use = 0;
      for (const auto& [other, unused] : held) in_use += other.capacity();
      ASSERT_EQ(pool.stats().in_use_nbytes, in_use);
      ASSERT_EQ(pool.stats().in_use_blocks, held.size());
      ASSERT_LE(pool.stats().idle_nbytes, pool.stats().limit_nbytes);
      peak = std::max(peak, in_use);
      ASSERT_GE(pool.stats().high_water_nbytes, peak);
      ASSERT_EQ(pool.stats().hits + pool.stats().misses, static_cast<std::uint64_t>(i + 1));
    }
    while (!held.empty()) end();
  }
}

}  // namespace
}  // namespace ferry
