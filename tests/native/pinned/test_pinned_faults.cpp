// Every call of the driver in turn fails: nothing is lost that is not counted, and the pool works afterwards.
#include <map>

#include "cuda/driver_error.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::CUresult;
using cuda::test::fail;
using cuda::test::live;
using test::OnRuntime;

constexpr std::size_t MiB = std::size_t{1} << 20;

struct Fault {
  std::string call;
  std::int64_t nth = 0;
  CUresult code = 0;
  bool after_acceptance = false;

  [[nodiscard]] std::string text() const {
    return call + " #" + std::to_string(nth) + " answers " + std::to_string(code) + (after_acceptance ? " after" : "");
  }
};

class PinnedFaults : public OnRuntime {
 protected:
  void SetUp() override {}
  void TearDown() override { end_world(); }

  void begin_world() {
    OnRuntime::begin({"two_devices"});
    cuda::test::use_device(1);
    cuda::test::use_device(0);
    torch_stream();
    cuda::test::forget_calls();
  }
  void end_world() {
    test::drain();
    streams_.clear();
    runtime_.reset();
    primaries_.reset();
    test::fake<void()>("fake_reset")();
  }

  // Everything once. What throws is dropped.
  void use_all(PinnedPool& pool, RetireQueue& queue) {
    const auto attempt = [](auto run) { static_cast<void>(cuda::test::error_of(run)); };
    std::shared_ptr<PinnedLease> a, b, c;
    attempt([&] { a = pool.lease(scope(), MiB); });
    attempt([&] { b = pool.lease(scope(), 100); });
    attempt([&] { c = pool.lease(scope(), MiB); });
    for (const auto& one : {a, b}) {
      if (one != nullptr) attempt([&] { one->hold(scope(), streams_.front()); });
    }
    a.reset();
    b.reset();
    attempt([&] {
      auto done = std::make_shared<cuda::Event>(runtime_->events().take(scope(), cuda::EventUse::ordering));
      done->record(streams_.front());
      queue.add({std::move(done), {}, {std::move(c)}, {}});
    });
    attempt([&] { test::close_epoch(pool, scope()); });
    for (int i = 0; i < 20; ++i) {
      queue.reap();
      pool.poll();
    }
    attempt([&] { static_cast<void>(pool.lease(scope(), MiB)); });
    pool.trim(0);
  }

  // The world after a fault: all that is locked is accounted for, or the loss was reported.
  void check_after(const Fault& fault) {
    begin_world();
    const std::uint64_t reported = cuda::cleanup_report().failures;
    {
      const auto made = pool();
      RetireQueue queue;
      fail(fault.call.c_str(), fault.nth, fault.code, fault.after_acceptance);
      use_all(*made, queue);
      cuda::test::clear_faults();
      for (int i = 0; i < 20; ++i) queue.reap();
      EXPECT_EQ(queue.stats().pending, 0U) << fault.text();
      exposed(lease(*made, MiB)).reset();
      test::close_epoch(*made, scope());
      poll_often(*made);
      const PinnedStats stats = made->stats();
      EXPECT_EQ(stats.in_use_leases, queue.stats().abandoned) << fault.text();
      EXPECT_EQ(stats.retired_nbytes, 0U) << fault.text();
      lost_ = stats.abandoned_nbytes > 0 || queue.stats().abandoned > 0 || cuda::cleanup_report().failures > reported;
      if (!lost_) {
        EXPECT_EQ(static_cast<std::int64_t>(stats.idle_nbytes), live("host_bytes")) << fault.text();
      }
    }
    if (!lost_) {
      EXPECT_EQ(live("host_registrations"), 0) << fault.text();
      EXPECT_EQ(live("pushed_contexts"), 0) << fault.text();
    }
    EXPECT_EQ(cuda::test::fake_text("fake_violations"), "") << fault.text();
    losses_ += lost_ ? 1 : 0;
    ++runs_;
    end_world();
  }

  std::map<std::string, std::int64_t> calls_of_one_use() {
    begin_world();
    {
      const auto made = pool();
      RetireQueue queue;
      use_all(*made, queue);
    }
    std::map<std::string, std::int64_t> counts;
    for (const std::string& name : cuda::test::names_of_calls()) ++counts[name];
    end_world();
    return counts;
  }

  bool lost_ = false;
  int losses_ = 0;
  int runs_ = 0;
};

TEST_F(PinnedFaults, BeforeACallDoesAnythingLeaveNothing) {
  for (const auto& [call, uses] : calls_of_one_use()) {
    for (std::int64_t nth = 1; nth <= uses; ++nth) {
      for (const CUresult code : {cuda::result::out_of_memory, CUresult{999}}) check_after({call, nth, code, false});
    }
  }
  EXPECT_GT(runs_, 200);
  EXPECT_LT(losses_, runs_ / 4);  // of those calls that clean up, or ask whether the context is there
}

TEST_F(PinnedFaults, ThatAreReportedByCallsThatWorkedLeaveNothing) {
  // What the others make is held by the layer below.
  for (const char* call : {"cuMemHostRegister", "cuMemHostUnregister", "cuEventRecord", "cuEventQuery",
                           "cuStreamIsCapturing", "cuCtxGetId", "cuDeviceGetPCIBusId"}) {
    const std::int64_t uses = calls_of_one_use()[call];
    EXPECT_GT(uses, 0) << call;
    for (std::int64_t nth = 1; nth <= uses; ++nth) {
      for (const CUresult code : {cuda::result::out_of_memory, CUresult{999}}) check_after({call, nth, code, true});
    }
  }
}

TEST_F(PinnedFaults, OfEveryUseOfACallEndInAnErrorOrWithoutMemory) {
  for (const auto& [call, uses] : calls_of_one_use()) {
    begin_world();
    {
      const auto made = pool();
      RetireQueue queue;
      fail(call.c_str(), 0, 999);
      use_all(*made, queue);
      cuda::test::clear_faults();
      EXPECT_NE(made->lease(scope(), MiB), nullptr) << call;
    }
    end_world();
  }
}

TEST_F(PinnedFaults, ThatEndTheDriverAreSurvived) {
  for (std::int64_t nth = 1; nth <= 80; ++nth) {
    begin_world();
    {
      const auto made = pool();
      RetireQueue queue;
      fail("*", nth, cuda::result::deinitialized);
      use_all(*made, queue);
      EXPECT_EQ(queue.stats().pending, 0U) << nth;
      EXPECT_EQ(made->stats().in_use_leases, queue.stats().abandoned) << nth;
    }
    end_world();
  }
}

}  // namespace
}  // namespace ferry
