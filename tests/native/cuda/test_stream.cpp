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

CUstream handle(std::uintptr_t number) { return reinterpret_cast<CUstream>(number); }

TEST(StreamFromDlpack, MapsTheTwoDefaultStreamsAndKeepsHandles) {
  EXPECT_EQ(stream_from_dlpack(1), handle(0x1));
  EXPECT_EQ(stream_from_dlpack(2), handle(0x2));
  EXPECT_EQ(stream_from_dlpack(0x7f00deadbeef), handle(0x7f00deadbeef));
}

TEST(StreamFromDlpack, TakesMinusOneForNoOrder) { EXPECT_EQ(stream_from_dlpack(-1), std::nullopt); }

TEST(StreamFromDlpack, RefusesZeroAndOtherNegativeNumbers) {
  EXPECT_EQ(error_of([] { static_cast<void>(stream_from_dlpack(0)); }),
            "stream=0: DLPack forbids 0: it does not say which default stream is meant; pass 1 for the legacy default "
            "stream, 2 for the per-thread one, -1 for no order, or a stream's handle");
  EXPECT_NE(error_of([] { static_cast<void>(stream_from_dlpack(-2)); }).find("negative"), std::string::npos);
}

TEST(StreamFromTable, MapsNullToTheLegacyStreamAndKeepsOthers) {
  EXPECT_EQ(stream_from_table(nullptr), handle(0x1));
  EXPECT_EQ(stream_from_table(handle(0x2)), handle(0x2));
  EXPECT_EQ(stream_from_table(handle(0x1234)), handle(0x1234));
}

TEST(StreamHandles, OnlyThePerThreadOneBelongsToTheCallingThread) {
  EXPECT_TRUE(belongs_to_calling_thread(per_thread_stream()));
  EXPECT_FALSE(belongs_to_calling_thread(legacy_stream()));
  EXPECT_FALSE(belongs_to_calling_thread(handle(0x1234)));
}

class Streams : public OnFakeDevice {};

TEST_F(Streams, OfOurOwnAreNotOrderedWithTheLegacyStreamAndHaveNoPriority) {
  {
    const OwnedStream stream(scope());
  }
  EXPECT_EQ(count_of("cuStreamCreateWithPriority flags=1 priority=0"), 1);
  EXPECT_EQ(count_of("cuStreamDestroy"), 1);
}

TEST_F(Streams, BelongToTheContextTheyWereMadeIn) {
  const OwnedStream stream(scope());
  EXPECT_EQ(context_of(functions(), stream.handle()), stream.context().handle);
  EXPECT_EQ(context_of(functions(), legacy_stream()), current_context(functions()));
  EXPECT_EQ(context_of(functions(), per_thread_stream()), current_context(functions()));
}

TEST_F(Streams, MoveWithoutBeingDestroyed) {
  OwnedStream first(scope());
  const OwnedStream second(std::move(first));
  EXPECT_EQ(live("streams"), 1);
  EXPECT_EQ(first.handle(), nullptr);  // NOLINT: what is left behind is the question
}

TEST_F(Streams, AreNotDestroyedAfterTheDeviceWasReset) {
  {
    const OwnedStream stream(scope());
    test::reset_device(0);
  }
  EXPECT_EQ(count_of("cuStreamDestroy"), 0);
}

TEST_F(Streams, AreNotDestroyedInAForkedChild) {
  std::optional<OwnedStream> stream(scope());
  EXPECT_EQ(test::in_child([&] {
              test::forget_calls();
              stream.reset();
              return std::to_string(test::calls().size());
            }),
            "0");
}

TEST_F(Streams, WaitForAnEventWithoutBlockingTheHost) {
  EventPool events(*driver_);
  const OwnedStream first(scope());
  const OwnedStream second(scope());
  const Event done = events.take(scope(), EventUse::ordering);
  const Event after = events.take(scope(), EventUse::ordering);
  test::hold_work(true);
  done.record(first.handle());
  order_after(functions(), second.handle(), done.handle());
  after.record(second.handle());
  EXPECT_FALSE(after.is_done());
  test::hold_work(false);
  while (!after.is_done()) {
  }
  EXPECT_TRUE(done.is_done());
  EXPECT_EQ(live("blocking_waits"), 0);
  EXPECT_EQ(live("busy_waits"), 0);
}

TEST_F(Streams, ThrowWhatTheDriverAnswers) {
  test::fail("cuStreamCreateWithPriority", 1, 2);
  EXPECT_NE(
      error_of([&] { const OwnedStream stream(scope()); }).find("cuStreamCreateWithPriority: the driver answered 2"),
      std::string::npos);
  const OwnedStream stream(scope());
  test::fail("cuStreamGetCtx", 1, 400);
  EXPECT_NE(error_of([&] { static_cast<void>(context_of(functions(), stream.handle())); }).find("400"),
            std::string::npos);
  test::fail("cuStreamWaitEvent", 1, 999);
  EXPECT_NE(error_of([&] { order_after(functions(), stream.handle(), nullptr); }).find("cuStreamWaitEvent"),
            std::string::npos);
}

TEST_F(Streams, AcceptTheEndOfTheDriverWhenTheyDie) {
  const CleanupReport before = cleanup_report();
  {
    const OwnedStream stream(scope());
    test::fail("*", 1, result::deinitialized);
  }
  EXPECT_EQ(cleanup_report().failures, before.failures);
  test::clear_faults();
  test::reset_device(0);  // the stream was abandoned
}

}  // namespace
}  // namespace ferry::cuda
