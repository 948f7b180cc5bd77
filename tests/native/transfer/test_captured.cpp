// Copies that are part of a graph: what each replay brings, and what the graph keeps alive.
#include "core/error.hpp"
#include "graph_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::fake;
using cuda::test::live;

struct Captured : ::testing::TestWithParam<const char*> {
  Random random{3};
};

TEST_P(Captured, EachReplayBringsTheValuesOfItsTime) {
  TransferWorld world({GetParam(), 7, {}, small_limits()});
  for (const int mode : {0, 1, 2}) {
    const CUstream stream = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {13, 17});
    const DeviceTensor tensor = world.tensor(image, stream);
    const HostTarget target = world.target(packed_image(random, DType::float32, {13, 17}));
    begin_capture(stream, mode);
    EXPECT_FALSE(capture(world, tensor, target).held_for_good);
    const FrameworkGraph graph(stream);
    ASSERT_EQ(graph.answer(), 0);
    for (int replay = 0; replay < 3; ++replay) {
      const Strided values = packed_image(random, DType::float32, {13, 17});
      TransferWorld::memory_of(tensor).write_later(values.memory, stream);
      EXPECT_EQ(replayed(world, graph, stream, target.ref, values.ref, "a replay"), "");
    }
  }
  EXPECT_EQ(world.end(), "");
}

TEST_P(Captured, CopiesOnAForkedStreamJoinTheCapture) {
  TransferWorld world({GetParam(), 8, {}, small_limits()});
  {
    const auto order_after = fake<int(void*, void*, int)>("fake_order_after");
    const CUstream origin = world.made_stream();
    const CUstream forked = world.made_stream();
    const Strided image = packed_image(random, DType::int16, {5, 31});
    const DeviceTensor tensor = world.tensor(image, origin);
    DeviceTensor on_fork = tensor;
    on_fork.stream = forked;
    const HostTarget targets[] = {world.target(packed_image(random, DType::int16, {5, 31})),
                                  world.target(packed_image(random, DType::int16, {5, 31}))};
    begin_capture(origin);
    ASSERT_EQ(order_after(forked, origin, 0), 0);
    CapturedCopies copies(world.transfers());
    copies.add(tensor, targets[0]);
    copies.add(on_fork, targets[1]);
    EXPECT_EQ(copies.enqueue().driver_copies, 2U);
    EXPECT_EQ(live("user_objects"), 1);  // both streams capture into one graph
    ASSERT_EQ(order_after(origin, forked, 0), 0);
    const FrameworkGraph graph(origin);
    ASSERT_EQ(graph.answer(), 0);
    const Strided values = packed_image(random, DType::int16, {5, 31});
    TransferWorld::memory_of(tensor).write_later(values.memory, forked);
    ASSERT_EQ(order_after(origin, forked, 0), 0);
    EXPECT_EQ(replayed(world, graph, origin, targets[0].ref, values.ref, "on the origin"), "");
    EXPECT_EQ(difference(values_of(targets[1].ref), values_of(values.ref), "on the fork"), "");
  }
  EXPECT_EQ(world.end(), "");
}

TEST_P(Captured, TheGraphHoldsWhatItsCopiesTouchUntilItIsGone) {
  TransferWorld world({GetParam(), 9, {}, small_limits()});
  {
    const CUstream stream = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {40, 40});
    DeviceTensor tensor = world.tensor(image, stream);
    HostTarget target = world.target(packed_image(random, DType::float32, {40, 40}));
    const TensorRef arrived = target.ref;
    begin_capture(stream);
    capture(world, tensor, target);
    std::optional<FrameworkGraph> graph(stream);
    tensor.owner.reset();
    target.lease.reset();
    world.settle();
    EXPECT_EQ(world.transfers().graph_holds().graphs(), 1U);
    EXPECT_EQ(world.transfers().results().stats().in_use_leases, 1U);
    EXPECT_EQ(replayed(world, *graph, stream, arrived, image.ref, "a replay"), "");
    graph->launch(stream);
    graph.reset();  // the launch is still under way on some schedules
    world.settle();
    EXPECT_EQ(world.transfers().graph_holds().graphs(), 0U);
    EXPECT_EQ(world.transfers().results().stats().in_use_leases, 0U);
  }
  EXPECT_EQ(world.end(), "");
}

INSTANTIATE_TEST_SUITE_P(Schedules, Captured, ::testing::ValuesIn(every_schedule),
                         [](const auto& param) { return std::string(param.param); });

TEST(CapturedCopies, RowsAtAStepAreOneCopyAndWhatIsEmptyIsNone) {
  Random random(4);
  TransferWorld world({});
  {
    const CUstream stream = world.made_stream();
    const Strided whole = packed_image(random, DType::float32, {8, 16});
    DeviceTensor rows = world.tensor(whole, stream);
    rows.ref.layout.shape = {8, 4};
    const Strided packed = packed_image(random, DType::float32, {8, 4});
    const Strided nothing = packed_image(random, DType::float32, {0, 4});
    const HostTarget target = world.target(packed);
    begin_capture(stream);
    cuda::test::forget_calls();
    CapturedCopies copies(world.transfers());
    copies.add(rows, target);
    copies.add(world.tensor(nothing, stream), world.target(nothing));
    EXPECT_EQ(copies.enqueue().driver_copies, 1U);
    EXPECT_EQ(cuda::test::count_of("cuMemcpy2DAsync"), 1);
    const FrameworkGraph graph(stream);
    TensorRef wanted = whole.ref;
    wanted.layout.shape = {8, 4};
    EXPECT_EQ(replayed(world, graph, stream, target.ref, wanted, "rows"), "");
  }
  EXPECT_EQ(world.end(), "");
}

TEST(CapturedCopies, WhereTheDriverTellsOfNoGraphsEndEverythingIsHeldForGood) {
  Random random(5);
  TransferWorld world({"lazy", 0, {"without:cuGraphRetainUserObject"}, small_limits()});
  const CUstream stream = world.made_stream();
  const Strided image = packed_image(random, DType::float32, {4});
  DeviceTensor tensor = world.tensor(image, stream);
  const HostTarget target = world.target(image);
  const std::weak_ptr<void> memory = tensor.owner;
  const std::uint64_t before = abandoned_holds();
  begin_capture(stream);
  EXPECT_TRUE(capture(world, tensor, target).held_for_good);
  EXPECT_EQ(abandoned_holds(), before + 2);  // the tensor's memory, and the lease
  tensor.owner.reset();
  {
    const FrameworkGraph graph(stream);
  }
  world.settle();
  EXPECT_FALSE(memory.expired());
}

TEST(CapturedCopies, OutsideOfACaptureNothingIsEnqueued) {
  Random random(6);
  TransferWorld world({});
  {
    const CUstream capturing = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {4});
    const DeviceTensor inside = world.tensor(image, capturing);
    const DeviceTensor outside = world.tensor(image, world.made_stream());
    const HostTarget target = world.target(image);
    begin_capture(capturing);
    CapturedCopies copies(world.transfers());
    copies.add(inside, target);
    copies.add(outside, world.target(image));
    const std::string said = error_text([&] { copies.enqueue(); });
    EXPECT_NE(said.find("its stream is not being captured"), std::string::npos) << said;
    EXPECT_EQ(cuda::test::count_of("cuMemcpyDtoHAsync"), 0);
    EXPECT_EQ(live("user_objects"), 0);
    const FrameworkGraph graph(capturing);
    EXPECT_EQ(graph.answer(), 0);
  }
  EXPECT_EQ(world.end(), "");
}

TEST(CapturedCopies, SomebodyElsesMistakeIsNamedAndNothingIsEnqueued) {
  Random random(7);
  TransferWorld world({});
  {
    const CUstream stream = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {4});
    const DeviceTensor tensor = world.tensor(image, stream);
    const HostTarget target = world.target(image);
    begin_capture(stream);
    cuda::test::as_somebody_else([&] { cuda::test::driver_function<int(CUstream)>("cuStreamQuery", 2000)(stream); });
    const std::string said = error_text([&] { capture(world, tensor, target); });
    EXPECT_NE(said.find("capture was invalidated"), std::string::npos) << said;
    EXPECT_EQ(cuda::test::count_of("cuMemcpyDtoHAsync"), 0);
    EXPECT_EQ(capture_of(world.transfers(), 0, stream), cuda::CaptureState::invalidated);
    const FrameworkGraph graph(stream);
    EXPECT_EQ(graph.answer(), cuda::result::stream_capture_invalidated);
  }
  EXPECT_EQ(world.end(), "");
}

TEST(CapturedCopies, AFailureOfTheDriverLeavesNothingHeld) {
  for (const char* call :
       {"cuStreamGetCaptureInfo", "cuUserObjectCreate", "cuGraphRetainUserObject", "cuMemcpyDtoHAsync"}) {
    Random random(8);
    TransferWorld world({});
    {
      const CUstream stream = world.made_stream();
      const Strided image = packed_image(random, DType::float32, {4});
      const DeviceTensor tensor = world.tensor(image, stream);
      const HostTarget target = world.target(image);
      begin_capture(stream);
      cuda::test::fail(call, 1, cuda::result::invalid_value);
      const std::string said = error_text([&] { capture(world, tensor, target); });
      EXPECT_NE(said.find(call), std::string::npos) << said;
      cuda::test::clear_faults();
      capture(world, tensor, target);
      const FrameworkGraph graph(stream);
      EXPECT_EQ(graph.answer(), 0) << call;
      EXPECT_EQ(replayed(world, graph, stream, target.ref, image.ref, call), "");
    }
    EXPECT_EQ(world.end(), "") << call;
    EXPECT_EQ(live("user_objects"), 0) << call;
  }
}

TEST(CapturedCopies, TheEndOfWorkIsNotAskedForInACapture) {
  TransferWorld world({});
  const CUstream stream = world.made_stream();
  begin_capture(stream);
  const std::string said = error_text([&] { static_cast<void>(end_of_work(world.transfers(), 0, stream)); });
  EXPECT_NE(said.find("is being captured into a graph"), std::string::npos) << said;
  {
    const FrameworkGraph graph(stream);
  }
  EXPECT_EQ(world.end(), "");
}

}  // namespace
}  // namespace ferry::test
