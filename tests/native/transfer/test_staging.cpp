// Device memory for snapshots: where it comes from, who waits for it, and what happens when there is none.
#include <deque>

#include "transfer/device_staging.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::count_of;
using cuda::test::fake;
using cuda::test::hold_work;
using cuda::test::live;

class Staging : public ::testing::Test {
 protected:
  void begin(WorldOptions options = {}) {
    world_ = std::make_unique<TransferWorld>(options);
    stream_ = world_->made_stream();
  }
  void TearDown() override {
    tensors_.clear();
    targets_.clear();
    EXPECT_EQ(world_->end(), "");
    world_.reset();
  }

  DownloadFacts download(Transfers::Batch& batch, Snapshot snapshot, BackPressure pressure,
                         const Extents& shape = {16, 16}) {
    const Strided image = packed_image(random_, DType::float32, shape);
    tensors_.push_back(world_->tensor(image, stream_));
    targets_.push_back(world_->target(image));
    wanted_.push_back(values_of(image.ref));
    return batch.download(tensors_.back(), targets_.back(), snapshot, pressure);
  }
  void expect_values() {
    for (std::size_t i = 0; i < targets_.size(); ++i) EXPECT_EQ(values_of(targets_[i].ref), wanted_[i]) << i;
  }
  static WorldOptions room_for_one() {
    WorldOptions options;
    options.limits.staging_nbytes = 1024;
    return options;
  }

  Random random_{11};
  std::unique_ptr<TransferWorld> world_;
  CUstream stream_ = nullptr;
  std::deque<DeviceTensor> tensors_;
  std::deque<HostTarget> targets_;
  std::vector<std::vector<std::byte>> wanted_;
};

TEST_F(Staging, IsTakenOnceFromTheStreamOrderedAllocator) {
  begin();
  Transfers::Batch batch(world_->transfers());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(download(batch, Snapshot::always, BackPressure::raise).snapshot);
  EXPECT_EQ(count_of("cuMemAllocAsync"), 1);
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, ComesFromTheProducersAllocatorWhereThereIsOne) {
  begin();
  int asked = 0;
  const CUstream home = world_->made_stream();
  world_->transfers().set_staging_source([&](int device, std::size_t nbytes) -> std::optional<DeviceMemory> {
    ++asked;
    EXPECT_EQ(live("pushed_contexts"), 0);
    auto memory = std::make_shared<FrameworkMemory>(nbytes, home, device);
    memory->write_later(std::vector<std::byte>(nbytes), home);  // of an earlier owner, not done yet
    return DeviceMemory{memory->address(), memory, home};
  });
  Transfers::Batch batch(world_->transfers());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(download(batch, Snapshot::always, BackPressure::raise).snapshot);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(count_of("cuMemAllocAsync"), 0);
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, OfOneDeviceIsAskedForWhileNoContextOfOursIsCurrent) {
  WorldOptions options;
  options.presets = {"two_devices"};
  begin(options);
  stream_ = world_->made_stream(1, 1);
  world_->transfers().set_staging_source([&](int device, std::size_t nbytes) -> std::optional<DeviceMemory> {
    EXPECT_EQ(live("pushed_contexts"), 0);
    auto memory = std::make_shared<FrameworkMemory>(nbytes, stream_, device);
    return DeviceMemory{memory->address(), memory, stream_};
  });
  const Strided image = packed_image(random_, DType::float32, {4, 4});
  tensors_.push_back(world_->tensor(image, stream_, 1));
  targets_.push_back(world_->target(image, 1));
  wanted_.push_back(values_of(image.ref));
  Transfers::Batch batch(world_->transfers());
  EXPECT_TRUE(batch.download(tensors_.back(), targets_.back(), Snapshot::always, BackPressure::raise).snapshot);
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, ThatCannotBeHadLeavesTheCopyOnTheProducersStream) {
  WorldOptions options;
  options.presets = {"without:cuMemAllocAsync"};
  begin(options);
  Transfers::Batch batch(world_->transfers());
  const DownloadFacts facts = download(batch, Snapshot::automatic, BackPressure::wait);
  EXPECT_TRUE(facts.on_producer_stream);
  const std::string said = error_text([&] { download(batch, Snapshot::always, BackPressure::wait); });
  EXPECT_NE(said.find("no device memory for staging"), std::string::npos) << said;
  batch.close()->wait();
  EXPECT_EQ(values_of(targets_[0].ref), wanted_[0]);
}

TEST_F(Staging, OutOfDeviceMemoryIsNotAskedForAgain) {
  begin();
  cuda::test::fail("cuMemAllocAsync", 0, cuda::result::out_of_memory);
  Transfers::Batch batch(world_->transfers());
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(download(batch, Snapshot::automatic, BackPressure::wait).on_producer_stream);
  }
  EXPECT_EQ(count_of("cuMemAllocAsync"), 1);
  cuda::test::clear_faults();
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, InUseMakesAWaitingCallerWaitForTheOldestCopy) {
  begin(room_for_one());
  Transfers::Batch batch(world_->transfers());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(download(batch, Snapshot::always, BackPressure::wait).snapshot);
  EXPECT_GT(count_of("cuEventSynchronize") + count_of("cuEventQuery"), 0);
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, InUseLeavesTheCopyOnTheProducersStreamWhereThatIsAskedFor) {
  begin(room_for_one());
  Transfers::Batch batch(world_->transfers());
  EXPECT_TRUE(download(batch, Snapshot::automatic, BackPressure::in_stream).snapshot);
  EXPECT_TRUE(download(batch, Snapshot::automatic, BackPressure::in_stream).on_producer_stream);
  EXPECT_EQ(count_of("cuEventSynchronize"), 0);
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, InUseIsAnErrorWhereThatIsAskedFor) {
  begin(room_for_one());
  hold_work(true);
  Transfers::Batch batch(world_->transfers());
  EXPECT_TRUE(download(batch, Snapshot::automatic, BackPressure::raise).snapshot);
  for (const auto& [snapshot, pressure] :
       {std::pair{Snapshot::automatic, BackPressure::raise}, std::pair{Snapshot::always, BackPressure::in_stream}}) {
    const std::string said = error_text([&] { download(batch, snapshot, pressure); });
    EXPECT_NE(said.find("all staging memory, or every place in the copy queue, is in use"), std::string::npos) << said;
  }
  hold_work(false);
  batch.close()->wait();
  EXPECT_EQ(values_of(targets_[0].ref), wanted_[0]);
}

TEST_F(Staging, TakesSoManyCopiesForAStreamAndNoMore) {
  begin();  // at most 8
  hold_work(true);
  Transfers::Batch batch(world_->transfers());
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(download(batch, Snapshot::always, BackPressure::raise, {2, 2}).snapshot);
  EXPECT_FALSE(download(batch, Snapshot::automatic, BackPressure::in_stream, {2, 2}).snapshot);
  hold_work(false);
  batch.close()->wait();
  expect_values();
  world_->transfers().reap();
  EXPECT_TRUE(download(batch, Snapshot::automatic, BackPressure::in_stream, {2, 2}).snapshot);
  batch.close()->wait();
  expect_values();
}

TEST_F(Staging, IsReplacedWhenThePlacesItLendsAreLost) {
  begin(room_for_one());
  {
    Transfers::Batch batch(world_->transfers());
    EXPECT_TRUE(download(batch, Snapshot::always, BackPressure::raise).snapshot);
    cuda::test::fail("cuEventRecord", 2, 999);  // the one behind the copy out of the snapshot
    EXPECT_THROW(static_cast<void>(batch.close()), Error);
    cuda::test::clear_faults();
  }
  Transfers::Batch batch(world_->transfers());
  EXPECT_TRUE(download(batch, Snapshot::always, BackPressure::wait).snapshot);
  batch.close()->wait();
  EXPECT_EQ(values_of(targets_.back().ref), wanted_.back());
  EXPECT_EQ(count_of("cuMemAllocAsync"), 2);
  tensors_.clear();
  targets_.clear();
  EXPECT_NE(world_->end().find("device_bytes are left"), std::string::npos);  // kept for good
}

TEST_F(Staging, IsLentFromTheFirstPlaceThatIsLargeEnough) {
  begin();
  cuda::Runtime& runtime = world_->runtime();
  const cuda::ContextScope scope = runtime.enter(0);
  auto memory = staging_from_driver(scope, 4096);
  ASSERT_TRUE(memory);
  const cuda::CUdeviceptr start = memory->address;
  const auto staging = std::make_shared<DeviceStaging>(runtime, scope, std::move(*memory), 4096);
  auto first = staging->take(1000, stream_, 8);
  const auto second = staging->take(1, stream_, 8);
  const auto third = staging->take(2048, stream_, 8);
  EXPECT_EQ(first->address() - start, 0U);
  EXPECT_EQ(second->address() - start, 1024U);
  EXPECT_EQ(third->address() - start, 1536U);
  EXPECT_EQ(staging->take(1024, stream_, 8), nullptr);
  EXPECT_EQ(staging->take(512, stream_, 3), nullptr);
  first.reset();
  EXPECT_EQ(staging->take(700, stream_, 8)->address() - start, 0U);
}

TEST_F(Staging, IsNeverTakenForACapture) {
  begin();
  const Strided image = packed_image(random_, DType::float32, {4, 4});
  tensors_.push_back(world_->tensor(image, stream_));
  targets_.push_back(world_->target(image));
  fake<void()>("fake_drain")();
  fake<int(void*, int, int)>("fake_begin_capture")(stream_, 0, 0);
  Transfers::Batch batch(world_->transfers());
  const std::string said =
      error_text([&] { batch.download(tensors_.back(), targets_.back(), Snapshot::automatic, BackPressure::wait); });
  EXPECT_NE(said.find("is being captured into a graph"), std::string::npos) << said;
  EXPECT_EQ(count_of("cuMemAllocAsync"), 0);
  void* graph = nullptr;
  EXPECT_EQ(fake<int(void*, int, void**)>("fake_end_capture")(stream_, 0, &graph), 0);
  fake<int(void*)>("fake_destroy_graph")(graph);
}

}  // namespace
}  // namespace ferry::test
