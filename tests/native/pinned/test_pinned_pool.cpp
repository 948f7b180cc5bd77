#include "cuda/driver_error.hpp"
#include "pinned/pinned_pool.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::test::count_of;
using cuda::test::fail;
using cuda::test::live;
using test::OnRuntime;

constexpr std::size_t page = 4096;
constexpr std::size_t KiB = std::size_t{1} << 10;
constexpr std::size_t MiB = std::size_t{1} << 20;

class PinnedPools : public OnRuntime {
 protected:
  // All locked pages are accounted for, and nothing else.
  static void expect_exact(const PinnedPool& pool) {
    const PinnedStats stats = pool.stats();
    EXPECT_EQ(static_cast<std::int64_t>(stats.in_use_nbytes + stats.idle_nbytes + stats.retired_nbytes),
              live("host_bytes"));
    EXPECT_LE(stats.high_water_nbytes, stats.limit_nbytes);
  }
};

TEST_F(PinnedPools, LendRegisteredMemoryOfAtLeastTheSize) {
  const auto made = pool();
  const auto small = lease(*made, 100);
  const auto large = lease(*made, MiB + 1);
  EXPECT_EQ(small->nbytes(), 100U);
  EXPECT_EQ(small->capacity(), 256U);
  EXPECT_EQ(large->capacity(), MiB + page);
  EXPECT_EQ(large->piece_nbytes(large->data(), MiB), MiB);
  EXPECT_EQ(small->piece_nbytes(small->data(), 100), 100U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small->data()) % 64, 0U);
  EXPECT_EQ(made->stats().in_use_nbytes, 256 + MiB + page);
  EXPECT_EQ(made->stats().in_use_leases, 2U);
  expect_exact(*made);
}

TEST_F(PinnedPools, LendWhatOnlyWeUsedAgainAtOnce) {
  const auto made = pool();
  const std::byte* const data = lease(*made, MiB)->data();
  EXPECT_EQ(made->stats().idle_nbytes, MiB);
  EXPECT_EQ(lease(*made, MiB)->data(), data);
  EXPECT_EQ(made->stats().hits, 1U);
  EXPECT_EQ(made->stats().misses, 1U);
  EXPECT_EQ(count_of("cuEventRecord"), 0);
  expect_exact(*made);
}

TEST_F(PinnedPools, WasteAtMostAnEighth) {
  const auto made = pool();
  const std::byte* const data = lease(*made, 9 * MiB)->data();
  EXPECT_EQ(lease(*made, 8 * MiB)->data(), data);
  EXPECT_EQ(lease(*made, 8 * MiB)->capacity(), 9 * MiB);
  const auto less = lease(*made, 8 * MiB - page);
  EXPECT_NE(less->data(), data);
  EXPECT_EQ(less->capacity(), 8 * MiB - page);
}

TEST_F(PinnedPools, ChooseTheBestFit) {
  const auto made = pool();
  std::byte* best = nullptr;
  {
    const auto large = lease(*made, 9 * MiB);
    const auto small = lease(*made, 8 * MiB + page);
    best = small->data();
  }
  EXPECT_EQ(lease(*made, 8 * MiB)->data(), best);
}

TEST_F(PinnedPools, CarveWhatIsSmallFromOneRegistration) {
  const auto made = pool();
  std::vector<std::shared_ptr<PinnedLease>> leases;
  for (int i = 0; i < 100; ++i) leases.push_back(lease(*made, 1000));
  EXPECT_EQ(live("host_registrations"), 1);
  EXPECT_EQ(made->stats().misses, 1U);
  EXPECT_EQ(made->stats().in_use_nbytes, 100 * KiB);
  EXPECT_EQ(made->stats().idle_nbytes, MiB - 100 * KiB);
  std::sort(leases.begin(), leases.end(), [](const auto& a, const auto& b) { return a->data() < b->data(); });
  for (std::size_t i = 1; i < leases.size(); ++i) EXPECT_GE(leases[i]->data() - leases[i - 1]->data(), 1024);
  expect_exact(*made);
}

TEST_F(PinnedPools, GiveEverySizeBelow32KiBASlotAndOthersABlock) {
  const auto made = pool();
  for (std::size_t nbytes = 0; nbytes < 32 * KiB; nbytes += 331) {
    const auto one = lease(*made, nbytes);
    EXPECT_GE(one->capacity(), nbytes);
    EXPECT_LE(one->capacity(), std::max<std::size_t>(2 * nbytes, 256));
  }
  const auto block = lease(*made, 32 * KiB);
  EXPECT_EQ(block->capacity(), 32 * KiB);
  EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(8 * MiB + 32 * KiB));
  expect_exact(*made);
}

TEST_F(PinnedPools, FillASlabToTheLastSlotBeforeTheyMakeAnother) {
  const auto made = pool();
  std::vector<std::shared_ptr<PinnedLease>> leases;
  for (int i = 0; i < 64; ++i) leases.push_back(lease(*made, 16 * KiB));
  EXPECT_EQ(made->stats().idle_nbytes, 0U);
  EXPECT_EQ(live("host_registrations"), 1);
  leases.push_back(lease(*made, 16 * KiB));
  EXPECT_EQ(live("host_registrations"), 2);
  leases.erase(leases.begin());
  leases.push_back(lease(*made, 16 * KiB));
  leases.push_back(lease(*made, 16 * KiB));
  EXPECT_EQ(live("host_registrations"), 2);
  expect_exact(*made);
  leases.clear();
  EXPECT_EQ(made->trim(0), 2 * MiB);
  EXPECT_EQ(live("host_registrations"), 0);
}

TEST_F(PinnedPools, TrimWhatWasUnusedForLongest) {
  const auto made = pool();
  std::vector<std::shared_ptr<PinnedLease>> leases;
  for (const std::size_t nbytes : {2 * MiB, MiB, 4 * MiB}) leases.push_back(lease(*made, nbytes));
  for (auto& one : leases) one.reset();
  EXPECT_EQ(made->trim(5 * MiB), 2 * MiB);
  EXPECT_EQ(made->stats().idle_nbytes, 5 * MiB);
  EXPECT_EQ(made->stats().trims, 1U);
  EXPECT_EQ(made->trim(0), 5 * MiB);
  EXPECT_EQ(live("host_bytes"), 0);
  expect_exact(*made);
}

TEST_F(PinnedPools, TrimSlabsOnlyAsAWhole) {
  const auto made = pool();
  auto one = lease(*made, 100);
  EXPECT_EQ(made->trim(0), 0U);
  one.reset();
  EXPECT_EQ(made->stats().idle_nbytes, MiB);
  EXPECT_EQ(made->trim(0), MiB);
  EXPECT_EQ(live("host_bytes"), 0);
}

TEST_F(PinnedPools, RefuseWhatIsBeyondTheLimit) {
  const auto made = pool(4 * MiB);
  const auto first = lease(*made, 3 * MiB);
  EXPECT_EQ(made->lease(scope(), 2 * MiB), nullptr);
  EXPECT_EQ(made->lease(scope(), 5 * MiB), nullptr);
  EXPECT_EQ(made->lease(scope(), SIZE_MAX), nullptr);
  EXPECT_EQ(made->stats().refusals, 3U);
  EXPECT_EQ(lease(*made, MiB)->capacity(), MiB);
  EXPECT_EQ(made->stats().high_water_nbytes, 4 * MiB);
  expect_exact(*made);
}

TEST_F(PinnedPools, GiveIdleBlocksBackToStayWithinTheLimit) {
  const auto made = pool(4 * MiB);
  lease(*made, 3 * MiB).reset();
  const auto other = lease(*made, 2 * MiB);
  EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(2 * MiB));
  EXPECT_EQ(made->stats().trims, 1U);
  expect_exact(*made);
}

TEST_F(PinnedPools, AreNotEmptiedInVain) {
  const auto made = pool(4 * MiB);
  const auto used = lease(*made, 2 * MiB);
  lease(*made, MiB).reset();
  EXPECT_EQ(made->lease(scope(), 3 * MiB), nullptr);
  EXPECT_EQ(made->stats().idle_nbytes, MiB);
  EXPECT_EQ(made->stats().trims, 0U);
}

TEST_F(PinnedPools, CountRetiredBlocksForTheLimitToo) {
  const auto made = pool(4 * MiB);
  cuda::test::hold_work(true);
  exposed(lease(*made, 3 * MiB)).reset();
  EXPECT_EQ(made->lease(scope(), 2 * MiB), nullptr);
  EXPECT_EQ(made->stats().retired_nbytes, 3 * MiB);
  cuda::test::hold_work(false);
  poll_often(*made);
  EXPECT_EQ(made->stats().retired_nbytes, 0U);
  EXPECT_NE(made->lease(scope(), 2 * MiB), nullptr);
  expect_exact(*made);
}

TEST_F(PinnedPools, ReturnTheLimitBeforeAndTrimToANewOne) {
  const auto made = pool(8 * MiB);
  const auto used = lease(*made, MiB);
  {
    const auto a = lease(*made, 2 * MiB);
    const auto b = lease(*made, 4 * MiB);
  }
  EXPECT_EQ(made->set_limit(4 * MiB), 8 * MiB);
  EXPECT_LE(made->stats().in_use_nbytes + made->stats().idle_nbytes, 4 * MiB);
  EXPECT_EQ(made->stats().limit_nbytes, 4 * MiB);
  EXPECT_EQ(made->set_limit(0), 4 * MiB);
  EXPECT_EQ(made->stats().idle_nbytes, 0U);
  EXPECT_EQ(made->lease(scope(), 1), nullptr);
  EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(MiB));
}

TEST_F(PinnedPools, GiveIdleBlocksBackWhereTheDriverLocksNoMore) {
  test::fake<void(std::uint64_t)>("fake_host_budget")(4 * MiB);
  const auto made = pool();
  lease(*made, 3 * MiB).reset();
  const auto other = lease(*made, 2 * MiB);
  EXPECT_EQ(made->lease(scope(), 3 * MiB), nullptr);
  EXPECT_EQ(made->stats().refusals, 1U);
  EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(2 * MiB));
  expect_exact(*made);
}

TEST_F(PinnedPools, LendNothingWhereTheDriverLocksNothing) {
  for (const char* call : {"cuMemHostRegister", "cuMemHostAlloc"}) fail(call, 0, cuda::result::not_supported);
  const auto made = pool();
  EXPECT_EQ(made->lease(scope(), 100), nullptr);
  EXPECT_EQ(made->lease(scope(), MiB), nullptr);
  EXPECT_EQ(made->stats().refusals, 2U);
  EXPECT_EQ(made->stats().in_use_nbytes + made->stats().idle_nbytes, 0U);
  cuda::test::clear_faults();
  EXPECT_NE(made->lease(scope(), MiB), nullptr);
  expect_exact(*made);
}

TEST_F(PinnedPools, FindTheLeaseThatHoldsBytes) {
  const auto made = pool();
  const auto small = lease(*made, 1000);
  auto large = lease(*made, MiB);
  EXPECT_EQ(made->find(small->data(), 1000), small);
  EXPECT_EQ(made->find(small->data() + 999, 1), small);
  EXPECT_EQ(made->find(large->data() + 5, MiB - 5), large);
  EXPECT_EQ(made->find(large->data() + 5, MiB), nullptr);
  EXPECT_EQ(made->find(small->data() + 1024, 1), nullptr);
  int elsewhere = 0;
  EXPECT_EQ(made->find(&elsewhere, sizeof elsewhere), nullptr);
  const std::byte* const data = large->data();
  large.reset();
  EXPECT_EQ(made->find(data, 1), nullptr);
}

TEST_F(PinnedPools, ThrowFailuresOfTheDeviceAndWorkAfterwards) {
  const auto made = pool();
  fail("cuMemHostRegister", 1, 999);
  EXPECT_NE(cuda::test::error_of([&] { static_cast<void>(made->lease(scope(), MiB)); }), "nothing");
  EXPECT_EQ(made->stats().in_use_nbytes, 0U);
  EXPECT_EQ(lease(*made, MiB)->capacity(), MiB);
  expect_exact(*made);
}

TEST_F(PinnedPools, OutliveTheirOwnersWhileSomethingIsOnLoan) {
  auto made = pool();
  auto one = lease(*made, MiB);
  made.reset();
  *one->data() = std::byte{1};
  EXPECT_EQ(live("host_registrations"), 1);
  one.reset();
  EXPECT_EQ(live("host_registrations"), 0);
}

TEST_F(PinnedPools, WorkOnADeviceThatIsNotCurrent) {
  OnRuntime::TearDown();
  OnRuntime::begin({"two_devices"});
  cuda::test::use_device(1);
  cuda::test::use_device(0);
  const auto made = pool();
  exposed(made->lease(scope(1), MiB)).reset();
  test::close_epoch(*made, scope(1));
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
  EXPECT_EQ(live("pushed_contexts"), 0);
}

}  // namespace
}  // namespace ferry
