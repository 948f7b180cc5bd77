// Which way a tensor takes: the table of defaults row by row, and laws that hold for whatever is known of it.
#include <array>
#include <string>
#include <vector>

#include "../support.hpp"
#include "transfer/path_choice.hpp"

namespace ferry::test {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

LinkFigures gen5() { return figures_for_rate(52e9, FiguresFrom::link); }

PathFacts block(std::int64_t nbytes, bool host_waits) {
  PathFacts facts;
  facts.nbytes = nbytes;
  facts.host_waits = host_waits;
  facts.has_kernels = true;
  facts.producer_packs = true;
  facts.staging_nbytes = 64 * mib;
  return facts;
}

PathFacts strided(std::int64_t nbytes, bool host_waits) {
  PathFacts facts = block(nbytes, host_waits);
  facts.is_block = false;
  return facts;
}

PathFacts rows(std::int64_t nbytes, bool host_waits) {
  PathFacts facts = strided(nbytes, host_waits);
  facts.rows_pay = true;
  return facts;
}

PathFacts cast(PathFacts facts) {
  facts.casts = true;
  return facts;
}

PathFacts without_kernels(PathFacts facts) {
  facts.has_kernels = facts.casts = false;
  return facts;
}

PathFacts to(HostMemory destination, PathFacts facts) {
  facts.destination = destination;
  return facts;
}

PathFacts of_plain_producer(PathFacts facts) {
  facts.producer_packs = false;
  return facts;
}

struct Row {
  const char* name;
  PathFacts facts;
  CopyPath path;
  Packer packer;
};

const std::vector<Row>& table() {
  static const std::vector<Row> all{
      {"NothingAtAll", block(0, true), CopyPath::nothing, Packer::nobody},
      {"SmallBlockWaitedFor", block(16 * kib, true), CopyPath::direct_store, Packer::nobody},
      {"BlockWaitedFor", block(16 * kib + 1, true), CopyPath::block, Packer::nobody},
      {"SmallBlockLeftBehind", block(65'000, false), CopyPath::direct_store, Packer::nobody},
      {"BlockLeftBehind", block(65'001, false), CopyPath::block, Packer::nobody},
      {"SmallStridedWaitedFor", strided(260'000, true), CopyPath::direct_store, Packer::nobody},
      {"StridedWaitedFor", strided(260'001, true), CopyPath::pack, Packer::kernel},
      {"SmallStridedLeftBehind", strided(65'000, false), CopyPath::direct_store, Packer::nobody},
      {"StridedLeftBehind", strided(65'001, false), CopyPath::pack, Packer::kernel},
      {"StridedThatFillsStaging", strided(64 * mib, true), CopyPath::pack, Packer::kernel},
      {"StridedLargerThanStaging", strided(64 * mib + 1, true), CopyPath::chunked_pack, Packer::kernel},
      {"WideRowsWaitedFor", rows(mib, true), CopyPath::rows, Packer::nobody},
      {"WideRowsLeftBehind", rows(mib, false), CopyPath::pack, Packer::kernel},
      {"CastOfABlock", cast(block(mib, true)), CopyPath::pack, Packer::kernel},
      {"CastOfWideRows", cast(rows(mib, true)), CopyPath::pack, Packer::kernel},
      {"CastOfASmallBlock", cast(block(200 * kib, true)), CopyPath::direct_store, Packer::nobody},
      {"SmallBlockToPinnedOfOthers", to(HostMemory::pinned, block(kib, true)), CopyPath::block, Packer::nobody},
      {"SmallStridedToPinnedOfOthers", to(HostMemory::pinned, strided(kib, true)), CopyPath::pack, Packer::kernel},
      {"BlockToOrdinaryMemory", to(HostMemory::ordinary, block(mib, true)), CopyPath::ring, Packer::nobody},
      {"StridedToOrdinaryMemory", to(HostMemory::ordinary, strided(mib, true)), CopyPath::ring, Packer::kernel},
      {"BlockWithoutKernels", without_kernels(block(kib, true)), CopyPath::block, Packer::nobody},
      {"StridedWithoutKernels", without_kernels(strided(mib, true)), CopyPath::producer_pack, Packer::producer},
      {"WideRowsWithoutKernels", without_kernels(rows(mib, true)), CopyPath::rows, Packer::nobody},
      {"StridedOfAPlainProducer", of_plain_producer(without_kernels(strided(mib, true))), CopyPath::pieces,
       Packer::nobody},
      {"StridedToTheRingWithoutKernels", to(HostMemory::ordinary, without_kernels(strided(mib, true))), CopyPath::ring,
       Packer::producer},
  };
  return all;
}

class Paths : public ::testing::TestWithParam<Row> {};

TEST_P(Paths, AreThoseOfTheTable) {
  const PathChoice choice = choose_path(GetParam().facts, gen5());
  EXPECT_EQ(choice.path, GetParam().path);
  EXPECT_EQ(choice.packer, GetParam().packer);
}

INSTANTIATE_TEST_SUITE_P(Table, Paths, ::testing::ValuesIn(table()),
                         [](const auto& param) { return std::string(param.param.name); });

PathFacts random_facts(Random& random) {
  PathFacts facts;
  facts.is_block = random.between(0, 1) == 0;
  facts.rows_pay = !facts.is_block && random.between(0, 1) == 0;
  facts.has_kernels = random.between(0, 2) != 0;
  facts.casts = facts.has_kernels && random.between(0, 2) == 0;
  facts.nbytes = std::int64_t{1} << random.between(0, 34);
  facts.host_waits = random.between(0, 1) == 0;
  facts.destination = static_cast<HostMemory>(random.between(0, 2));
  facts.producer_packs = random.between(0, 1) == 0;
  facts.staging_nbytes = std::int64_t{1} << random.between(0, 30);
  return facts;
}

// From a store by way of one pack to packing in parts: none comes back when there is more to move.
int size_class(CopyPath path) {
  if (path == CopyPath::direct_store) return 0;
  return path == CopyPath::chunked_pack ? 2 : 1;
}

constexpr std::uint32_t seeds = 2000;

TEST(PathChoice, NeverGoesBackToSmallWaysAsSizesGrow) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    PathFacts facts = random_facts(random);
    const LinkFigures link = figures_for_rate(static_cast<double>(random.between(1, 100)) * 1e9, FiguresFrom::link);
    int last = 0;
    for (facts.nbytes = 1; facts.nbytes < std::int64_t{1} << 40; facts.nbytes *= 2) {
      const int now = size_class(choose_path(facts, link).path);
      ASSERT_GE(now, last) << "seed " << seed << ", " << facts.nbytes << " bytes";
      last = now;
    }
  }
}

TEST(PathChoice, StoresNoLessOnAFasterLink) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const PathFacts facts = random_facts(random);
    const double rate = static_cast<double>(random.between(1, 50)) * 1e9;
    const bool slow = choose_path(facts, figures_for_rate(rate, FiguresFrom::link)).path == CopyPath::direct_store;
    const bool fast = choose_path(facts, figures_for_rate(2 * rate, FiguresFrom::link)).path == CopyPath::direct_store;
    ASSERT_TRUE(fast || !slow) << "seed " << seed;
  }
}

TEST(PathChoice, StoresNoLessForWhoWaits) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    PathFacts facts = random_facts(random);
    if (facts.is_block && !facts.casts) continue;  // the copy engine is as good then
    facts.rows_pay = false;
    facts.host_waits = false;
    if (choose_path(facts, gen5()).path != CopyPath::direct_store) continue;
    facts.host_waits = true;
    ASSERT_EQ(choose_path(facts, gen5()).path, CopyPath::direct_store) << "seed " << seed;
  }
}

TEST(PathChoice, LaunchesNothingWithoutKernels) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const PathFacts facts = without_kernels(random_facts(random));
    const PathChoice choice = choose_path(facts, gen5());
    ASSERT_NE(choice.packer, Packer::kernel) << "seed " << seed;
    ASSERT_NE(choice.path, CopyPath::direct_store) << "seed " << seed;
    ASSERT_NE(choice.path, CopyPath::pack) << "seed " << seed;
    ASSERT_NE(choice.path, CopyPath::chunked_pack) << "seed " << seed;
  }
}

TEST(PathChoice, AsksNoProducerToPackWhereThereAreKernels) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    PathFacts facts = random_facts(random);
    facts.has_kernels = true;
    const PathChoice choice = choose_path(facts, gen5());
    ASSERT_NE(choice.packer, Packer::producer) << "seed " << seed;
    ASSERT_NE(choice.path, CopyPath::pieces) << "seed " << seed;
  }
}

TEST(PathChoice, StoresToNothingButMappedMemory) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const PathFacts facts = random_facts(random);
    if (choose_path(facts, gen5()).path != CopyPath::direct_store) continue;
    ASSERT_EQ(facts.destination, HostMemory::mapped) << "seed " << seed;
  }
}

TEST(PathChoice, CopiesRowsFromTheWidthThatPaysAndInUnitsOf64Bytes) {
  const auto layout = [](std::int64_t row, std::int64_t step) { return Layout{{8, row}, {step, 1}, 1}; };
  EXPECT_TRUE(has_wide_rows(layout(4096, 8192), 4096));
  EXPECT_FALSE(has_wide_rows(layout(4032, 8192), 4096));
  EXPECT_TRUE(has_wide_rows(layout(512, 1024), 512));
  EXPECT_FALSE(has_wide_rows(layout(4128, 8192), 4096));
  EXPECT_FALSE(has_wide_rows(layout(4096, 8200), 4096));
  EXPECT_FALSE(has_wide_rows({{8, 4}, {100, 16}, 4}, 4096));
}

}  // namespace
}  // namespace ferry::test
