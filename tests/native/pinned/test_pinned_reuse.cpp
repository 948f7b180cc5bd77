// When a block that others may have used is lent again.
#include "cuda/driver_error.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::CUdeviceptr;
using cuda::CUstream;
using cuda::test::count_of;
using cuda::test::fail;
using cuda::test::hold_work;
using cuda::test::live;
using test::copies_to_host;
using test::device_memory_of;
using test::OnRuntime;

constexpr std::size_t MiB = std::size_t{1} << 20;

class PinnedReuse : public OnRuntime {
 protected:
  // Leases, has somebody else write into the memory later, and lets go.
  std::byte* used_by_others(PinnedPool& pool, CUstream stream, std::size_t nbytes = MiB) {
    const auto given = exposed(lease(pool, nbytes));
    EXPECT_EQ(copies_to_host(given->data(), device_memory_of(0x11, nbytes), nbytes, stream), 0);
    return given->data();
  }
  void close(PinnedPool& pool) { test::close_epoch(pool, scope()); }
};

TEST_F(PinnedReuse, WaitsForTheWorkOfOthers) {
  const auto made = pool();
  hold_work(true);
  const std::byte* const data = used_by_others(*made, torch_stream());
  EXPECT_EQ(made->stats().retired_nbytes, MiB);
  const auto next = lease(*made, MiB);
  EXPECT_NE(next->data(), data);
  for (int i = 0; i < 20; ++i) made->poll();
  EXPECT_EQ(made->stats().epochs, 0U);
  hold_work(false);
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
  EXPECT_EQ(lease(*made, MiB)->data(), data);
}

TEST_F(PinnedReuse, RecordsOneEventForEachStreamInOneEpoch) {
  const auto made = pool();
  for (int i = 0; i < 3; ++i) torch_stream();
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(runtime_->copy_stream(scope(), cuda::Direction::to_host, streams_[static_cast<std::size_t>(i)]));
  }
  std::vector<std::shared_ptr<PinnedLease>> leases;
  for (int i = 0; i < 5; ++i) leases.push_back(exposed(lease(*made, MiB)));
  leases.clear();
  const std::size_t own = runtime_->own_streams(scope().context()).size();
  cuda::test::forget_calls();
  close(*made);
  EXPECT_EQ(static_cast<std::size_t>(count_of("cuEventRecord")), 1 + 3 + own);
  EXPECT_EQ(count_of("cuEventSynchronize") + count_of("cuStreamQuery"), 0);
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

TEST_F(PinnedReuse, LooksForACaptureRightBeforeEachRecordAndAfterIt) {
  const auto made = pool();
  for (int i = 0; i < 3; ++i) torch_stream();
  used_by_others(*made, streams_.front());
  cuda::test::forget_calls();
  close(*made);
  std::vector<std::string> calls;
  for (const std::string& line : cuda::test::calls()) {
    if (line.starts_with("cuStreamIsCapturing") || line.starts_with("cuEventRecord")) calls.push_back(line);
  }
  ASSERT_EQ(calls.size(), 12U);
  for (std::size_t i = 0; i < calls.size(); i += 3) {
    const std::string looked = calls[i].substr(calls[i].find(' ') + 1);
    EXPECT_TRUE(calls[i].starts_with("cuStreamIsCapturing"));
    EXPECT_TRUE(calls[i + 1].starts_with("cuEventRecord"));
    EXPECT_TRUE(calls[i + 1].ends_with("stream=" + looked)) << calls[i] << " / " << calls[i + 1];
    EXPECT_EQ(calls[i + 2], calls[i]);
  }
  poll_often(*made);
}

TEST_F(PinnedReuse, CallsNoDeviceWhenALeaseDies) {
  const auto made = pool();
  auto plain = lease(*made, MiB);
  auto small = lease(*made, 100);
  auto given = exposed(lease(*made, MiB));
  given->hold(scope(), torch_stream());
  cuda::test::forget_calls();
  plain.reset();
  small.reset();
  given.reset();
  EXPECT_TRUE(cuda::test::calls().empty());
  close(*made);
  poll_often(*made);
}

TEST_F(PinnedReuse, BeginsAnEpochByItselfAbove64MiB) {
  const auto made = pool(std::size_t{1} << 30);
  auto large = exposed(lease(*made, 64 * MiB));
  auto small = exposed(lease(*made, MiB));
  large.reset();
  made->poll();
  EXPECT_EQ(count_of("cuEventRecord"), 0);
  small.reset();
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
  EXPECT_EQ(made->stats().retired_nbytes, 0U);
}

TEST_F(PinnedReuse, RecordsNothingWhileIdleMemoryIsThere) {
  const auto made = pool();
  {
    const auto a = lease(*made, MiB);
    const auto b = lease(*made, MiB);
  }
  cuda::test::forget_calls();
  exposed(lease(*made, MiB)).reset();
  lease(*made, MiB).reset();
  EXPECT_EQ(count_of("cuEventRecord"), 0);
  close(*made);
  poll_often(*made);
}

TEST_F(PinnedReuse, CoversEveryDeviceWithAnActiveContext) {
  OnRuntime::TearDown();
  OnRuntime::begin({"two_devices"});
  cuda::test::use_device(1);
  cuda::test::use_device(0);
  const auto made = pool();
  exposed(lease(*made, MiB)).reset();
  cuda::test::forget_calls();
  close(*made);
  EXPECT_EQ(count_of("cuEventRecord"), 2);
  poll_often(*made);
  EXPECT_EQ(live("pushed_contexts"), 0);
}

TEST_F(PinnedReuse, CreatesNoContextForAFence) {
  OnRuntime::TearDown();
  OnRuntime::begin({"eight_devices"});
  const auto made = pool();
  exposed(lease(*made, MiB)).reset();
  close(*made);
  poll_often(*made);
  EXPECT_EQ(live("primary_contexts"), 1);
  EXPECT_EQ(made->stats().epochs, 1U);
}

TEST_F(PinnedReuse, KeepsFewEpochsWaiting) {
  const auto made = pool(std::size_t{1} << 30);
  const CUstream stream = torch_stream();
  hold_work(true);
  for (int i = 0; i < 20; ++i) used_by_others(*made, stream);
  EXPECT_LE(live("events"), 4 * 2);
  EXPECT_EQ(made->stats().retired_nbytes, 20 * MiB);
  hold_work(false);
  for (int i = 0; i < 10; ++i) {
    close(*made);
    poll_often(*made);
  }
  EXPECT_EQ(made->stats().retired_nbytes, 0U);
}

TEST_F(PinnedReuse, WaitsForAStreamThatWasHeld) {
  const auto made = pool();
  const CUstream other = unknown_stream();
  auto given = lease(*made, MiB);
  const std::byte* const data = given->data();
  copies_to_host(given->data(), device_memory_of(0x11, MiB), MiB, other);
  given->hold(scope(), other);
  given.reset();
  EXPECT_NE(lease(*made, MiB)->data(), data);
  for (int i = 0; i < 3; ++i) {  // the fence has passed, the hold is put off
    close(*made);
    made->poll();
  }
  poll_often(*made);
  const auto again = lease(*made, MiB);
  test::fill(*again, 0x22);
  test::drain();
  EXPECT_TRUE(test::holds(*again, 0x22));
}

TEST_F(PinnedReuse, ByContextTakesOneEventWhereTheDriverHasIt) {
  const auto made = pool(256 * MiB, Fence::context);
  const std::byte* const data = used_by_others(*made, unknown_stream());
  cuda::test::forget_calls();
  close(*made);
  EXPECT_EQ(count_of("cuCtxRecordEvent"), 1);
  EXPECT_EQ(count_of("cuEventRecord"), 0);
  EXPECT_GE(count_of("cuStreamIsCapturing"), 1);
  poll_often(*made);
  const auto again = lease(*made, MiB);
  EXPECT_EQ(again->data(), data);
  test::fill(*again, 0x22);
  test::drain();
  EXPECT_TRUE(test::holds(*again, 0x22));
}

TEST_F(PinnedReuse, ByContextTakesStreamsOnAnOldDriver) {
  OnRuntime::TearDown();
  OnRuntime::begin({"driver_525"});
  const auto made = pool(256 * MiB, Fence::context);
  used_by_others(*made, torch_stream());
  cuda::test::forget_calls();
  close(*made);
  EXPECT_EQ(count_of("cuEventRecord"), 2);
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

TEST_F(PinnedReuse, NeverGivesBlocksBackOnceTheirStreamsHavePassed) {
  const auto made = pool(256 * MiB, Fence::never);
  hold_work(true);
  used_by_others(*made, torch_stream(), 100);
  used_by_others(*made, streams_.front());
  close(*made);
  EXPECT_GE(live("host_registrations"), 2);
  hold_work(false);
  poll_often(*made);
  EXPECT_EQ(made->stats().retired_nbytes, 0U);
  EXPECT_EQ(made->stats().trims, 2U);
  made->trim(0);
  EXPECT_EQ(live("host_bytes"), 0);
  lease(*made, MiB).reset();  // what only we used is lent again
  lease(*made, MiB).reset();
  EXPECT_EQ(made->stats().hits, 1U);
}

}  // namespace
}  // namespace ferry
