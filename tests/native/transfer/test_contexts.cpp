// Streams and contexts that are not what is current.
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::as_somebody_else;
using cuda::test::driver_function;
using cuda::test::fake;

class Contexts : public ::testing::Test {
 protected:
  void begin(std::vector<const char*> presets) {
    WorldOptions options;
    options.presets = std::move(presets);
    world_ = std::make_unique<TransferWorld>(options);
  }
  void TearDown() override {
    tensor_ = {};
    target_ = {};
    EXPECT_EQ(world_->end(), "");
    world_.reset();
  }
  // All ways of a transfer, for a tensor of this stream.
  void expect_all_ways_work(CUstream stream, int device = 0) {
    const Strided image = packed_image(random_, DType::float32, {20, 30});
    const Strided pageable = packed_image(random_, DType::float32, {20, 30});
    tensor_ = world_->tensor(image, stream, device);
    for (const Snapshot snapshot : {Snapshot::never, Snapshot::always}) {
      target_ = world_->target(packed_image(random_, DType::float32, {20, 30}), device);
      Transfers::Batch batch(world_->transfers());
      batch.download(tensor_, target_, snapshot, BackPressure::raise);
      batch.close()->wait();
      EXPECT_EQ(values_of(target_.ref), values_of(image.ref));
    }
    world_->transfers().download_through_ring(tensor_, pageable.ref);
    EXPECT_EQ(pageable.memory, image.memory);
    const Strided other = packed_image(random_, DType::float32, {20, 30});
    world_->transfers().upload_through_ring(tensor_, other.ref)->wait();
    world_->settle();
    EXPECT_EQ(values_on_device(tensor_, image), values_of(other.ref));
  }

  Random random_{9};
  std::unique_ptr<TransferWorld> world_;
  DeviceTensor tensor_;
  HostTarget target_;
};

TEST_F(Contexts, OfAStreamGetItsEventsAlsoWhenAnotherOneOfTheDeviceIsCurrent) {
  begin({});
  void* const green = fake<void*(int)>("fake_green_context")(0);
  CUstream stream = nullptr;
  as_somebody_else([&] {
    driver_function<int(void*)>("cuCtxPushCurrent", 4000)(green);
    driver_function<int(CUstream*, unsigned)>("cuStreamCreate", 2000)(&stream, 1);
    void* popped = nullptr;
    driver_function<int(void**)>("cuCtxPopCurrent", 4000)(&popped);
  });
  ASSERT_NE(stream, nullptr);
  expect_all_ways_work(stream);
  as_somebody_else([&] { driver_function<int(CUstream)>("cuStreamDestroy", 4000)(stream); });
}

TEST_F(Contexts, ThatAreGreenKeepTheirOwnDefaultStreams) {
  begin({"green_context"});
  cuda::test::use_device(0);
  expect_all_ways_work(cuda::legacy_stream());
}

TEST_F(Contexts, OfAnotherDeviceThanTheCurrentOneServeItsDefaultStreams) {
  begin({"two_devices"});
  cuda::test::use_device(1);
  cuda::test::use_device(0);
  expect_all_ways_work(cuda::legacy_stream(), 1);
  expect_all_ways_work(cuda::per_thread_stream(), 1);
}

TEST_F(Contexts, OfAnotherDeviceThanTheTensorsAreRefused) {
  begin({"two_devices"});
  const CUstream there = world_->made_stream(1, 1);
  const CUstream here = world_->made_stream(1, 0);
  const Strided image = packed_image(random_, DType::float32, {4});
  tensor_ = world_->tensor(image, here, 0);
  tensor_.stream = there;
  target_ = world_->target(image);
  Transfers::Batch batch(world_->transfers());
  for (const Snapshot snapshot : {Snapshot::never, Snapshot::automatic}) {
    const std::string said = error_text([&] { batch.download(tensor_, target_, snapshot, BackPressure::wait); });
    EXPECT_NE(said.find("its stream belongs to device 1"), std::string::npos) << said;
  }
  EXPECT_EQ(cuda::test::live("pushed_contexts"), 0);
}

TEST_F(Contexts, AreNotGuessedForATensorWithoutAStream) {
  begin({});
  const Strided image = packed_image(random_, DType::float32, {4});
  tensor_ = world_->tensor(image, world_->made_stream());
  tensor_.stream = nullptr;
  target_ = world_->target(image);
  Transfers::Batch batch(world_->transfers());
  const std::string said = error_text([&] { batch.download(tensor_, target_, Snapshot::never, BackPressure::wait); });
  EXPECT_NE(said.find("without a stream"), std::string::npos) << said;
}

TEST_F(Contexts, ThatWereResetAreForgotten) {
  begin({});
  expect_all_ways_work(world_->made_stream());
  world_->settle();
  tensor_ = {};
  target_ = {};
  fake<void()>("fake_drain")();
  cuda::test::reset_device(0);
  cuda::test::use_device(0);
  fake<void()>("fake_clear_violations")();
  const Strided image = packed_image(random_, DType::float32, {20, 30});
  const Strided pageable = packed_image(random_, DType::float32, {20, 30});
  tensor_ = world_->tensor(image, world_->made_stream());
  world_->transfers().download_through_ring(tensor_, pageable.ref);
  EXPECT_EQ(pageable.memory, image.memory);
  target_ = world_->target(image);
  Transfers::Batch batch(world_->transfers());
  EXPECT_TRUE(batch.download(tensor_, target_, Snapshot::always, BackPressure::raise).snapshot);
  batch.close()->wait();
  EXPECT_EQ(values_of(target_.ref), values_of(image.ref));
  tensor_ = {};
  target_ = {};
  world_->settle();
  world_.reset();
  fake<void()>("fake_reset")();
  world_ = std::make_unique<TransferWorld>(WorldOptions{});
}

TEST_F(Contexts, GiveEachProducersStreamACopyStreamOfItsOwnWhileThereAreAny) {
  begin({});
  const cuda::ContextScope scope = world_->runtime().enter(0);
  std::vector<CUstream> given;
  for (std::uintptr_t i = 0; i < 8; ++i) {
    const auto producer = reinterpret_cast<CUstream>((i + 1) << 12);
    given.push_back(world_->runtime().copy_stream(scope, cuda::Direction::to_host, producer));
    EXPECT_EQ(world_->runtime().copy_stream(scope, cuda::Direction::to_host, producer), given.back());
  }
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < i; ++k) EXPECT_NE(given[i], given[k]);
  }
  const std::vector<CUstream> own = world_->runtime().own_streams(scope.context());
  EXPECT_EQ(own.size(), cuda::Runtime::copy_streams_per_direction);
  for (const CUstream one : given) EXPECT_NE(std::find(own.begin(), own.end(), one), own.end());
}

TEST_F(Contexts, RememberTheStreamsOfOthersOnce) {
  begin({});
  const auto stream = reinterpret_cast<CUstream>(std::uintptr_t{4096});
  world_->runtime().add_foreign_streams(0, {stream, stream});
  world_->runtime().add_foreign_streams(0, {stream});
  EXPECT_EQ(world_->runtime().foreign_streams(0), std::vector<CUstream>{stream});
  EXPECT_TRUE(world_->runtime().foreign_streams(1).empty());
}

}  // namespace
}  // namespace ferry::test
