// What a batch asks of the driver, and what it refuses.
#include <deque>
#include <thread>

#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::count_of;
using cuda::test::fake;
using cuda::test::hold_work;
using cuda::test::names_of_calls;

// A world in which nothing may go wrong, and which is empty at the end.
class Batches : public ::testing::Test {
 protected:
  void begin(WorldOptions options = {}) { world_ = std::make_unique<TransferWorld>(options); }
  void TearDown() override {
    tensors_.clear();
    targets_.clear();
    EXPECT_EQ(world_->end(), "");
    world_.reset();
  }

  struct Download {
    DeviceTensor& tensor;
    HostTarget& target;
    std::vector<std::byte> wanted;
  };
  Download make(const Extents& shape, CUstream stream, int device = 0) {
    const Strided image = packed_image(random_, DType::float32, shape);
    tensors_.push_back(world_->tensor(image, stream, device));
    targets_.push_back(world_->target(image, device));
    std::fill_n(targets_.back().lease->data(), targets_.back().lease->nbytes(), std::byte{0x11});
    return {tensors_.back(), targets_.back(), values_of(image.ref)};
  }
  [[nodiscard]] std::int64_t free_later(const Download& one) { return one.tensor.owner.use_count(); }

  Random random_{7};
  std::unique_ptr<TransferWorld> world_;
  std::deque<DeviceTensor> tensors_;
  std::deque<HostTarget> targets_;
};

TEST_F(Batches, Of64TensorsTake64CopiesAndOneEventAndWaitForNothing) {
  begin();
  const CUstream stream = world_->made_stream();
  std::vector<Download> all;
  for (int i = 0; i < 64; ++i) all.push_back(make({5, 7}, stream));
  Transfers::Batch batch(world_->transfers());
  cuda::test::forget_calls();
  for (const Download& one : all) batch.download(one.tensor, one.target, Snapshot::never, BackPressure::raise);
  const auto pending = batch.close();
  EXPECT_EQ(count_of("cuMemcpyDtoHAsync"), 64);
  EXPECT_EQ(count_of("cuEventCreate"), 1);
  EXPECT_EQ(count_of("cuEventRecord"), 1);
  for (const char* wait : {"cuEventSynchronize", "cuStreamWaitEvent", "cuEventQuery", "cuMemcpy2DAsync"})
    EXPECT_EQ(count_of(wait), 0) << wait;
  pending->wait();
  EXPECT_EQ(count_of("cuEventSynchronize") + count_of("cuEventQuery") > 0, true);
  for (const Download& one : all) EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, OfSnapshotsTakeOneEventForAllSnapshotsAndOneForAllCopies) {
  WorldOptions options;
  options.limits.most_in_flight = 64;
  begin(options);
  const CUstream stream = world_->made_stream();
  std::vector<Download> all;
  for (int i = 0; i < 16; ++i) all.push_back(make({5, 7}, stream));
  make({1}, stream);
  Transfers::Batch batch(world_->transfers());
  batch.download(tensors_.back(), targets_.back(), Snapshot::always, BackPressure::raise);  // takes staging
  cuda::test::forget_calls();
  for (const Download& one : all) {
    const DownloadFacts facts = batch.download(one.tensor, one.target, Snapshot::always, BackPressure::raise);
    EXPECT_TRUE(facts.snapshot);
    EXPECT_FALSE(facts.on_producer_stream);
    EXPECT_EQ(facts.driver_copies, 2U);
  }
  const auto pending = batch.close();
  EXPECT_EQ(count_of("cuMemcpyDtoDAsync"), 16);
  EXPECT_EQ(count_of("cuMemcpyDtoHAsync"), 17);
  EXPECT_EQ(count_of("cuEventRecord"), 2);
  EXPECT_EQ(count_of("cuStreamWaitEvent"), 1);
  EXPECT_EQ(count_of("cuEventSynchronize"), 0);
  pending->wait();
  for (const Download& one : all) EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, LetGoOfASnapshotsSourceBeforeItsCopyIsDone) {
  begin();
  const CUstream stream = world_->made_stream();
  const Download one = make({5, 7}, stream);
  const std::weak_ptr<void> memory = one.tensor.owner;
  const std::weak_ptr<void> lease = one.target.lease;
  Transfers::Batch batch(world_->transfers());
  batch.download(one.tensor, one.target, Snapshot::always, BackPressure::raise);
  const auto pending = batch.close();
  one.tensor.owner.reset();
  one.target.lease.reset();
  EXPECT_FALSE(memory.expired());
  // The producer's stream comes to its end, ours does not.
  cuda::test::as_somebody_else(
      [&] { cuda::test::driver_function<int(CUstream)>("cuStreamSynchronize", 2000)(stream); });
  world_->transfers().reap();
  EXPECT_TRUE(memory.expired());
  EXPECT_FALSE(lease.expired());
  pending->wait();
  world_->settle();
  EXPECT_TRUE(lease.expired());
}

TEST_F(Batches, OfWhatIsASnapshotCopyItOnceOnAStreamOfOursAndHoldItUntilThen) {
  begin();
  const CUstream stream = world_->made_stream();
  const Download one = make({5, 7}, stream);
  const std::weak_ptr<void> memory = one.tensor.owner;
  Transfers::Batch batch(world_->transfers());
  cuda::test::forget_calls();
  const DownloadFacts facts = batch.download(one.tensor, one.target, Snapshot::taken, BackPressure::raise);
  EXPECT_TRUE(facts.snapshot);
  EXPECT_FALSE(facts.on_producer_stream);
  EXPECT_EQ(facts.driver_copies, 1U);
  const auto pending = batch.close();
  EXPECT_EQ(count_of("cuMemcpyDtoDAsync"), 0);
  EXPECT_EQ(count_of("cuMemcpyDtoHAsync"), 1);
  EXPECT_EQ(count_of("cuStreamWaitEvent"), 1);
  one.tensor.owner.reset();
  cuda::test::as_somebody_else(
      [&] { cuda::test::driver_function<int(CUstream)>("cuStreamSynchronize", 2000)(stream); });
  world_->transfers().reap();
  EXPECT_FALSE(memory.expired());
  pending->wait();
  world_->settle();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, HoldWhatADroppedPendingTouches) {
  begin();
  const Download one = make({5, 7}, world_->made_stream());
  const std::weak_ptr<void> memory = one.tensor.owner;
  {
    Transfers::Batch batch(world_->transfers());
    batch.download(one.tensor, one.target, Snapshot::never, BackPressure::raise);
  }  // closed, and nobody waits
  one.tensor.owner.reset();
  EXPECT_FALSE(memory.expired());
  world_->settle();
  EXPECT_TRUE(memory.expired());
  EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, CutLongCopiesOnTheProducersStream) {
  begin();
  const Download one = make({1024}, world_->made_stream());  // 4 KiB, in chunks of 1 KiB
  Transfers::Batch batch(world_->transfers());
  EXPECT_EQ(batch.download(one.tensor, one.target, Snapshot::never, BackPressure::raise).driver_copies, 4U);
  batch.close()->wait();
  EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, CopyOnTheProducersStreamWhatIsTooLargeForASnapshot) {
  begin();
  const Download one = make({3000}, world_->made_stream());
  Transfers::Batch batch(world_->transfers());
  const DownloadFacts facts = batch.download(one.tensor, one.target, Snapshot::automatic, BackPressure::raise);
  EXPECT_TRUE(facts.on_producer_stream);
  EXPECT_FALSE(facts.snapshot);
  const std::string said =
      error_text([&] { batch.download(one.tensor, one.target, Snapshot::always, BackPressure::raise); });
  EXPECT_NE(said.find("12000 bytes are more than the 8192"), std::string::npos) << said;
  batch.close()->wait();
  EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, NameContiguousWhereTheElementsAreTooScattered) {
  begin();
  Strided image = packed_image(random_, DType::uint8, {40, 40, 40});
  DeviceTensor tensor = world_->tensor(image, world_->made_stream());
  HostTarget target = world_->target(image);
  target.ref.layout.strides = {1, 40, 1600};
  Transfers::Batch batch(world_->transfers());
  const std::string said = error_text([&] { batch.download(tensor, target, Snapshot::never, BackPressure::raise); });
  EXPECT_NE(said.find("more than 1024 pieces; call .contiguous()"), std::string::npos) << said;
  EXPECT_EQ(count_of("cuEventRecord"), 0);
}

TEST_F(Batches, RefuseADestinationOfAnotherShape) {
  begin();
  const Download one = make({4, 6}, world_->made_stream());
  one.target.ref.layout.shape = {6, 4};
  Transfers::Batch batch(world_->transfers());
  const std::string said =
      error_text([&] { batch.download(one.tensor, one.target, Snapshot::never, BackPressure::raise); });
  EXPECT_NE(said.find("same shape and dtype"), std::string::npos) << said;
  one.target.ref.layout = {{4, 6}, {0, 4}, 4};
  EXPECT_NE(error_text([&] {
              batch.download(one.tensor, one.target, Snapshot::never, BackPressure::raise);
            }).find("share memory"),
            std::string::npos);
}

TEST_F(Batches, OfNothingAreDoneAtOnce) {
  begin();
  const Download one = make({0, 3}, world_->made_stream());
  Transfers::Batch batch(world_->transfers());
  cuda::test::forget_calls();
  EXPECT_EQ(batch.download(one.tensor, one.target, Snapshot::always, BackPressure::raise).driver_copies, 0U);
  EXPECT_TRUE(batch.close()->done());
  EXPECT_TRUE(cuda::test::calls().empty());
}

TEST_F(Batches, MayBeClosedByAnotherThreadThanTheOneOfAPerThreadStream) {
  begin();
  const Download one = make({5, 7}, cuda::per_thread_stream());
  Transfers::Batch batch(world_->transfers());
  batch.download(one.tensor, one.target, Snapshot::never, BackPressure::raise);
  std::shared_ptr<Pending> pending;
  std::thread([&] {
    cuda::test::use_device(0);
    pending = batch.close();
    pending->wait();
  }).join();
  EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, GoOnInTheContextTheyBeganIn) {
  WorldOptions options;
  options.presets = {"two_devices"};
  begin(options);
  const CUstream stream = world_->made_stream(1, 1);
  const Download one = make({5, 7}, stream, 1);
  Transfers::Batch batch(world_->transfers());
  batch.download(one.tensor, one.target, Snapshot::always, BackPressure::raise);
  cuda::test::use_device(1);
  const auto pending = batch.close();
  cuda::test::use_device(0);
  pending->wait();
  EXPECT_EQ(values_of(one.target.ref), one.wanted);
}

TEST_F(Batches, UploadFromPinnedMemoryInStreamOrder) {
  begin();
  const CUstream stream = world_->made_stream();
  const Strided image = packed_image(random_, DType::float32, {5, 7});
  tensors_.push_back(world_->tensor(image, stream));
  targets_.push_back(world_->target(packed_image(random_, DType::float32, {5, 7})));
  Transfers::Batch batch(world_->transfers());
  EXPECT_EQ(batch.upload_pinned(tensors_.back(), targets_.back()).driver_copies, 1U);
  batch.close()->wait();
  EXPECT_EQ(values_on_device(tensors_.back(), image), values_of(targets_.back().ref));
}

}  // namespace
}  // namespace ferry::test
