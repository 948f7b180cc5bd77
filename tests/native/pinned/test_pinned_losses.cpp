// What becomes of pinned memory when a device is lost or reset.
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

class PinnedLosses : public OnRuntime {
 protected:
  // Leases, has somebody else write into the memory later, and lets go.
  std::byte* used_by_others(PinnedPool& pool, CUstream stream, std::size_t nbytes = MiB) {
    const auto given = exposed(lease(pool, nbytes));
    EXPECT_EQ(copies_to_host(given->data(), device_memory_of(0x11, nbytes), nbytes, stream), 0);
    return given->data();
  }
  void close(PinnedPool& pool) { test::close_epoch(pool, scope()); }
};

TEST_F(PinnedLosses, OfADeviceAbandonWhatItMayTouch) {
  const auto made = pool();
  const CUstream stream = torch_stream();
  const std::byte* const data = used_by_others(*made, stream);
  close(*made);
  fail("execution", 1, cuda::result::illegal_address);
  poll_often(*made);
  EXPECT_EQ(made->stats().abandoned_nbytes, MiB);
  EXPECT_EQ(made->stats().retired_nbytes, 0U);
  cuda::test::clear_faults();
  cuda::test::reset_device(0);
  streams_.clear();
  static_cast<void>(*data);  // still mapped
}

TEST_F(PinnedLosses, ByAResetAbandonWhatWaitsForEventsAndDropWhatIsIdle) {
  const auto made = pool();
  std::byte* const data = used_by_others(*made, unknown_stream());
  lease(*made, 100).reset();
  lease(*made, 2 * MiB).reset();
  close(*made);
  made->poll();
  cuda::test::reset_device(0);
  streams_.clear();
  poll_often(*made);
  EXPECT_EQ(made->stats().abandoned_nbytes, MiB);
  *data = std::byte{1};
  // What was idle is no longer pinned: it is dropped, not lent.
  cuda::test::use_device(0);
  const auto small = lease(*made, 100);
  const auto large = lease(*made, 2 * MiB);
  EXPECT_EQ(live("host_registrations"), 2);
  EXPECT_NE(large->data(), data);
  made->trim(0);
  EXPECT_EQ(static_cast<std::int64_t>(made->stats().in_use_nbytes + made->stats().idle_nbytes), live("host_bytes"));
}

TEST_F(PinnedLosses, ByAResetForgetTheStreamsOfOthers) {
  const auto made = pool();
  auto given = exposed(lease(*made, MiB));
  torch_stream();
  cuda::test::reset_device(0);
  streams_.clear();
  given.reset();
  cuda::test::forget_calls();
  close(*made);
  EXPECT_EQ(count_of("cuEventRecord"), 1);  // the legacy stream of the new context
  poll_often(*made);
  EXPECT_EQ(made->stats().abandoned_nbytes, 0U);
  EXPECT_EQ(made->stats().epochs, 1U);
  torch_stream();
  EXPECT_EQ(runtime_->foreign_streams(0).size(), 1U);
}

TEST_F(PinnedLosses, OfOneDeviceLeaveOthersAtWork) {
  OnRuntime::TearDown();
  OnRuntime::begin({"two_devices"});
  cuda::test::use_device(1);
  test::as_somebody_else([] { EXPECT_EQ(test::driver_function<int()>("cuCtxSynchronize", 2000)(), 0); });
  const auto made = pool();
  cuda::test::use_device(0);
  auto before = exposed(lease(*made, MiB));
  cuda::test::use_device(1);
  fail("cuCtxGetDevice", 1, cuda::result::illegal_address);  // ends the context of device 1
  EXPECT_NE(cuda::test::error_of([&] { static_cast<void>(scope(1)); }), "nothing");
  cuda::test::clear_faults();
  cuda::test::use_device(0);
  before.reset();
  close(*made);
  EXPECT_EQ(made->stats().abandoned_nbytes, MiB);
  for (int i = 0; i < 3; ++i) {
    exposed(lease(*made, MiB)).reset();
    close(*made);
    poll_often(*made);
  }
  EXPECT_EQ(made->stats().retired_nbytes, 0U);
  EXPECT_EQ(made->stats().abandoned_nbytes, MiB);
  EXPECT_GE(made->stats().epochs, 1U);
  test::fake<void()>("fake_reset")();  // what was abandoned stays registered
  runtime_.reset();
  primaries_.reset();
}

}  // namespace
}  // namespace ferry
