#include <thread>

#include "child.hpp"
#include "cuda/driver_error.hpp"
#include "cuda/event.hpp"
#include "cuda/stream.hpp"
#include "fake.hpp"

namespace ferry::cuda {
namespace {

using test::count_of;
using test::error_of;
using test::live;
using test::OnFakeDevice;

class Events : public OnFakeDevice {
 protected:
  void SetUp() override {
    begin({"two_devices"});
    pool_.emplace(*driver_, 4);
  }
  void TearDown() override {
    pool_.reset();
    OnFakeDevice::TearDown();
  }
  Event take(EventUse use = EventUse::ordering, int device = 0) { return pool_->take(scope(device), use); }

  std::optional<EventPool> pool_;
};

TEST_F(Events, AreMadeWithoutTimingAndThoseForWaitingSleep) {
  {
    const Event event = take(EventUse::ordering);
  }
  EXPECT_EQ(count_of("cuEventCreate flags=2"), 1);
  {
    const Event event = take(EventUse::waiting);
  }
  EXPECT_EQ(count_of("cuEventCreate flags=3"), 1);
}

TEST_F(Events, AreUsedAgain) {
  CUevent first = nullptr;
  for (int i = 0; i < 5; ++i) {
    const Event event = take();
    if (i == 0) first = event.handle();
    EXPECT_EQ(event.handle(), first);
  }
  EXPECT_EQ(count_of("cuEventCreate"), 1);
  EXPECT_EQ(pool_->idle(), 1U);
}

TEST_F(Events, OfTheTwoUsesAreKeptApart) {
  const CUevent ordering = take(EventUse::ordering).handle();
  EXPECT_NE(take(EventUse::waiting).handle(), ordering);
  EXPECT_EQ(take(EventUse::ordering).handle(), ordering);
}

TEST_F(Events, OfTwoContextsAreKeptApart) {
  test::use_device(1);
  const CUevent second = take(EventUse::ordering, 1).handle();
  test::use_device(0);
  const Event first = take(EventUse::ordering, 0);
  EXPECT_NE(first.handle(), second);
  EXPECT_EQ(take(EventUse::ordering, 1).handle(), second);
}

TEST_F(Events, BeyondTheLimitAreDestroyed) {
  {
    std::vector<Event> many;
    for (int i = 0; i < 6; ++i) many.push_back(take());
    EXPECT_EQ(live("events"), 6);
  }
  EXPECT_EQ(pool_->idle(), 4U);
  EXPECT_EQ(live("events"), 4);
}

TEST_F(Events, AreDestroyedWithThePool) {
  {
    const Event event = take();
  }
  pool_.reset();
  EXPECT_EQ(live("events"), 0);
}

TEST_F(Events, GoBackOnceWhenMoved) {
  {
    Event first = take();
    const Event second(std::move(first));
  }
  EXPECT_EQ(pool_->idle(), 1U);
}

TEST_F(Events, NeverRecordedAreDone) { EXPECT_TRUE(take().is_done()); }

TEST_F(Events, AreDoneWhenTheWorkBeforeThemIs) {
  const OwnedStream stream(scope());
  const Event event = take();
  test::hold_work(true);
  event.record(stream.handle());
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(event.is_done());
  test::hold_work(false);
  int queries = 0;
  while (!event.is_done()) ++queries;
  EXPECT_LT(queries, 100);
  EXPECT_EQ(live("busy_waits") + live("blocking_waits"), 0);
}

TEST_F(Events, AreWaitedForAsleep) {
  const OwnedStream stream(scope());
  const Event event = take(EventUse::waiting);
  event.record(stream.handle());
  event.wait();
  EXPECT_TRUE(event.is_done());
  EXPECT_EQ(live("blocking_waits"), 1);
  EXPECT_EQ(live("busy_waits"), 0);
}

TEST_F(Events, AreQueriedAndWaitedForWithRelaxedCapture) {
  const Event event = take(EventUse::waiting);
  test::forget_calls();
  EXPECT_TRUE(event.is_done());
  event.wait();
  const std::string exchange = "cuThreadExchangeStreamCaptureMode";
  EXPECT_EQ(test::names_of_calls(),
            (std::vector<std::string>{exchange, "cuEventQuery", exchange, exchange, "cuEventSynchronize", exchange}));
}

TEST_F(Events, KeepEarlierWaitsAsTheyWereWhenRecordedAgain) {
  const OwnedStream first(scope());
  const OwnedStream second(scope());
  const OwnedStream slow(scope());
  const Event event = take();
  const Event after = take(EventUse::waiting);
  event.record(first.handle());
  order_after(functions(), second.handle(), event.handle());
  event.record(slow.handle());
  after.record(second.handle());
  after.wait();  // needs the first recording only
  EXPECT_TRUE(after.is_done());
}

TEST_F(Events, NameTheFailureOfEarlierWork) {
  const unsigned long long memory = test::fake<unsigned long long(std::size_t, int)>("fake_alloc")(4, 0);
  const Event event = take(EventUse::waiting);
  test::fail("execution", 1, 700);
  test::fake<int(unsigned long long, const void*, std::size_t, void*, int)>("fake_write_later")(memory, "abc", 4,
                                                                                                legacy_stream(), 0);
  event.record(legacy_stream());
  const std::string said = error_of([&] { event.wait(); });
  EXPECT_TRUE(
      said.starts_with("cuEventSynchronize: an earlier operation on this device failed: the driver answered "
                       "700, CUDA_ERROR_ILLEGAL_ADDRESS"))
      << said;
  EXPECT_NE(error_of([&] { static_cast<void>(event.is_done()); }).find("earlier operation"), std::string::npos);
  test::reset_device(0);
}

TEST_F(Events, LeaveNothingWhenOneCannotBeMade) {
  test::fail("cuEventCreate", 1, 2);
  EXPECT_EQ(error_of([&] { static_cast<void>(take()); }),
            "cuEventCreate: the driver answered 2, CUDA_ERROR_OUT_OF_MEMORY (out of memory); free device or pinned "
            "memory, or move less at a time");
  EXPECT_EQ(live("events"), 0);
  EXPECT_TRUE(take().is_done());
}

TEST_F(Events, GoBackAfterARecordThatFailed) {
  {
    const Event event = take();
    test::fail("cuEventRecord", 1, 400);
    EXPECT_NE(error_of([&] { event.record(legacy_stream()); }).find("cuEventRecord"), std::string::npos);
  }
  EXPECT_EQ(pool_->idle(), 1U);
}

TEST_F(Events, AreAbandonedWhenTheDeviceWasReset) {
  const CUevent idle = take().handle();
  {
    const Event lent = take(EventUse::waiting);
    test::reset_device(0);
  }
  const Event made = take();
  EXPECT_NE(made.handle(), idle);
  EXPECT_TRUE(made.is_done());
  EXPECT_EQ(count_of("cuEventCreate"), 3);
  EXPECT_EQ(count_of("cuEventDestroy"), 0);
}

TEST_F(Events, OfBeforeAResetDoNotComeBackAmongThoseOfAfter) {
  std::optional<Event> before(take());
  test::reset_device(0);
  const CUevent after = take().handle();
  before.reset();
  EXPECT_EQ(pool_->idle(), 1U);
  EXPECT_EQ(take().handle(), after);
  EXPECT_EQ(count_of("cuEventDestroy"), 0);
}

TEST_F(Events, ReportADestructionThatFails) {
  {
    const Event event = take();
  }
  const CleanupReport before = cleanup_report();
  test::fail("cuEventDestroy", 1, 999);
  pool_.reset();
  EXPECT_EQ(cleanup_report().failures, before.failures + 1);
  EXPECT_STREQ(cleanup_report().last_call, "cuEventDestroy");
  test::reset_device(0);
}

TEST_F(Events, CallNothingInAForkedChildAndSayWhy) {
  std::optional<Event> event(take());
  {
    const Event idle = take();
  }
  const std::string said = test::in_child([&] {
    test::forget_calls();
    std::string words = error_of([&] { static_cast<void>(event->is_done()); });
    event.reset();
    pool_.reset();
    return words + " | " + std::to_string(test::calls().size());
  });
  EXPECT_TRUE(said.starts_with("a device in a forked process")) << said;
  EXPECT_TRUE(said.ends_with("| 0")) << said;
}

TEST_F(Events, AreSharedByThreads) {
  std::vector<std::thread> threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const ContextScope inside(*driver_, *primaries_, 0, Primary::if_active);
      const OwnedStream stream(inside);
      for (int round = 0; round < 50; ++round) {
        const Event event = pool_->take(inside, EventUse::waiting);
        event.record(stream.handle());
        event.wait();
        done += event.is_done() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, 200);
  EXPECT_LE(count_of("cuEventCreate"), 4);
}

}  // namespace
}  // namespace ferry::cuda
