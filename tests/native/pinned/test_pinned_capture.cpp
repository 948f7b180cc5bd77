// Captures of others, in whatever thread and mode, survive what pool and queue do meanwhile.
#include <thread>

#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::CUstream;
using cuda::test::count_of;
using test::fake;
using test::OnRuntime;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr int global_mode = 0;

class PinnedCaptures : public OnRuntime {
 protected:
  static void begin_capture(CUstream stream) {
    ASSERT_EQ(fake<int(void*, int, int)>("fake_begin_capture")(stream, global_mode, 0), 0);
  }
  // The driver's answer; 0 for a capture that nobody has spoiled.
  static int end_capture(CUstream stream) {
    void* graph = nullptr;
    const int code = fake<int(void*, int, void**)>("fake_end_capture")(stream, 0, &graph);
    if (graph != nullptr) fake<int(void*)>("fake_destroy_graph")(graph);
    return code;
  }
  CUstream blocking_stream() {
    CUstream stream = nullptr;
    test::as_somebody_else(
        [&] { test::driver_function<int(CUstream*, unsigned)>("cuStreamCreate", 2000)(&stream, 0); });
    return streams_.emplace_back(stream);
  }
  // An exposed block is back, and everything is asked of the pool that may close its epoch.
  void try_to_fence(PinnedPool& pool) {
    exposed(lease(pool, MiB)).reset();
    for (int i = 0; i < 5; ++i) {
      test::close_epoch(pool, scope());
      pool.poll();
    }
  }
  void let_fences_pass(PinnedPool& pool) {
    test::close_epoch(pool, scope());
    poll_often(pool);
    EXPECT_EQ(pool.stats().retired_nbytes, 0U);
  }

  // The answer to the end of a capture of `stream`, in the middle of which the pool wants to fence.
  int capture_around_fence(CUstream stream, Fence fence) {
    const auto made = pool(256 * MiB, fence);
    begin_capture(stream);
    try_to_fence(*made);
    fences_ = made->stats().epochs;
    const int code = end_capture(stream);
    let_fences_pass(*made);
    return code;
  }
  // The same around a reap in another thread.
  int capture_around_reap(CUstream stream) {
    RetireQueue queue;
    auto done = std::make_shared<cuda::Event>(runtime_->events().take(scope(), cuda::EventUse::ordering));
    done->record(torch_stream());
    queue.add({std::move(done), {}, {}, {}});
    begin_capture(stream);
    std::thread([&] {
      cuda::test::use_device(0);
      queue.reap();
    }).join();
    const int code = end_capture(stream);
    while (queue.stats().pending > 0) queue.reap();
    return code;
  }

  std::uint64_t fences_ = 0;
};

TEST_F(PinnedCaptures, OfAStreamThatAFenceCoversPutItOff) {
  const CUstream stream = torch_stream();
  EXPECT_EQ(capture_around_fence(stream, Fence::streams), 0);
  EXPECT_EQ(fences_, 0U);
}

TEST_F(PinnedCaptures, OfAStreamThatABlockingOneOrdersPutAFenceOff) {
  EXPECT_EQ(capture_around_fence(blocking_stream(), Fence::streams), 0);
  EXPECT_EQ(fences_, 0U);
}

TEST_F(PinnedCaptures, OfTheWholeContextPutAFenceOff) {
  const CUstream stream = torch_stream();
  EXPECT_EQ(capture_around_fence(stream, Fence::context), 0);
  EXPECT_EQ(fences_, 0U);
}

TEST_F(PinnedCaptures, OfOtherStreamsDoNotDelayAFence) {
  torch_stream();
  EXPECT_EQ(capture_around_fence(unknown_stream(), Fence::streams), 0);
  EXPECT_EQ(fences_, 1U);
}

TEST_F(PinnedCaptures, SurviveAReapInAnotherThread) { EXPECT_EQ(capture_around_reap(unknown_stream()), 0); }

TEST_F(PinnedCaptures, SurviveThatMemoryIsLockedAndGivenBack) {
  const CUstream stream = unknown_stream();
  const auto made = pool();
  begin_capture(stream);
  lease(*made, MiB).reset();
  lease(*made, 100).reset();
  EXPECT_EQ(made->trim(0), 2 * MiB);
  EXPECT_EQ(end_capture(stream), 0);
}

TEST_F(PinnedCaptures, AreNotJoinedByAHold) {
  const CUstream stream = unknown_stream();
  const auto made = pool();
  auto given = lease(*made, MiB);
  begin_capture(stream);
  EXPECT_NE(cuda::test::error_of([&] { given->hold(scope(), stream); }).find("capturing"), std::string::npos);
  EXPECT_EQ(count_of("cuEventRecord"), 0);
  EXPECT_EQ(end_capture(stream), 0);
  given->hold(scope(), stream);
  given.reset();
  let_fences_pass(*made);
}

TEST_F(PinnedCaptures, AreSpoiledWhereNobodyLooksForThem) {
  const test::Mutated mutated(Mutation::ignore_capture);
  EXPECT_NE(capture_around_fence(torch_stream(), Fence::context), 0);
  EXPECT_NE(capture_around_fence(blocking_stream(), Fence::streams), 0);
  fake<void()>("fake_clear_violations")();
}

TEST_F(PinnedCaptures, AreSpoiledByAnUnrelaxedReap) {
  const test::Mutated mutated(Mutation::query_unrelaxed);
  EXPECT_NE(capture_around_reap(unknown_stream()), 0);
  fake<void()>("fake_clear_violations")();
}

class PinnedGreenContexts : public PinnedCaptures {};

TEST_F(PinnedGreenContexts, AreCoveredBesideThePrimaryContext) {
  using Context = cuda::CUcontext;
  const auto made = pool();
  auto* const green = static_cast<Context>(fake<void*(int)>("fake_green_context")(0));
  test::as_somebody_else([&] { test::driver_function<int(Context)>("cuCtxPushCurrent", 4000)(green); });
  exposed(lease(*made, MiB)).reset();
  cuda::test::forget_calls();
  test::close_epoch(*made, scope());
  EXPECT_EQ(count_of("cuEventRecord"), 2);  // the legacy stream of each
  Context popped = nullptr;
  test::as_somebody_else([&] { test::driver_function<int(Context*)>("cuCtxPopCurrent", 4000)(&popped); });
  EXPECT_EQ(popped, green);
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

}  // namespace
}  // namespace ferry
