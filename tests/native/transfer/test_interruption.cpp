// Waits that end because the waiting thread is wanted elsewhere.
#include <atomic>
#include <thread>

#include "transfer/abandoned.hpp"
#include "transfer/host_ring.hpp"
#include "transfer/interruption.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::count_of;
using cuda::test::hold_work;

std::atomic<int> questions{0};

bool yes() {
  ++questions;
  return true;
}
bool no() {
  ++questions;
  return false;
}

// Does the call end by an interruption?
template <class Call>
bool is_interrupted(Call call) {
  const InterruptibleWaits waits(&yes);
  try {
    call();
  } catch (const Interrupted&) {
    return true;
  }
  return false;
}

class Interruption : public ::testing::Test {
 protected:
  Interruption() : world_(std::make_unique<TransferWorld>(WorldOptions{})), stream_(world_->made_stream()) {
    questions = 0;
  }
  void TearDown() override {
    tensor_ = {};
    EXPECT_EQ(world_->end(), "");
    world_.reset();
  }
  void make(const Extents& shape) {
    image_ = packed_image(random_, DType::float32, shape);
    tensor_ = world_->tensor(image_, stream_);
  }

  Random random_{9};
  std::unique_ptr<TransferWorld> world_;
  CUstream stream_ = nullptr;
  Strided image_;
  DeviceTensor tensor_;
};

TEST_F(Interruption, EndsAWaitAndTheNextOneLastsUntilTheWorkIsDone) {
  make({5, 7});
  HostTarget target = world_->target(image_);
  hold_work(true);
  std::shared_ptr<Pending> pending;
  {
    Transfers::Batch batch(world_->transfers());
    batch.download(tensor_, target, Snapshot::never, BackPressure::raise);
    pending = batch.close();
  }
  EXPECT_TRUE(is_interrupted([&] { pending->wait(); }));
  EXPECT_TRUE(is_interrupted([&] { pending->wait(); }));
  EXPECT_FALSE(pending->done());
  hold_work(false);
  pending->wait();
  EXPECT_EQ(values_of(target.ref), values_of(image_.ref));
  EXPECT_EQ(abandoned_holds(), 0U);
}

TEST_F(Interruption, IsAskedForNowAndThenAndNotInsteadOfTheDevice) {
  make({5, 7});
  HostTarget target = world_->target(image_);
  Transfers::Batch batch(world_->transfers());
  batch.download(tensor_, target, Snapshot::never, BackPressure::raise);
  const auto pending = batch.close();
  hold_work(true);
  std::thread release([] {
    while (questions.load() < 3) std::this_thread::yield();
    hold_work(false);
  });
  {
    const InterruptibleWaits waits(&no);
    pending->wait();
  }
  release.join();
  EXPECT_GE(questions.load(), 3);
  EXPECT_EQ(count_of("cuEventSynchronize"), 0);
  EXPECT_EQ(values_of(target.ref), values_of(image_.ref));
}

TEST_F(Interruption, IsOverWithItsScope) {
  EXPECT_EQ(InterruptibleWaits::current(), nullptr);
  {
    const InterruptibleWaits outer(&yes);
    {
      const InterruptibleWaits inner(nullptr);
      EXPECT_EQ(InterruptibleWaits::current(), nullptr);
    }
    EXPECT_EQ(InterruptibleWaits::current(), &yes);
    std::thread([] { EXPECT_EQ(InterruptibleWaits::current(), nullptr); }).join();
  }
  EXPECT_EQ(InterruptibleWaits::current(), nullptr);
}

TEST_F(Interruption, OfADownloadThroughTheRingLosesNoPinnedMemory) {
  make({8192});
  const Strided destination = packed_image(random_, DType::float32, {8192});
  hold_work(true);
  for (int i = 0; i < 6; ++i) {  // more often than there are slots
    EXPECT_TRUE(is_interrupted([&] { world_->transfers().download_through_ring(tensor_, destination.ref); }));
  }
  hold_work(false);
  world_->transfers().download_through_ring(tensor_, destination.ref);
  EXPECT_EQ(values_of(destination.ref), values_of(image_.ref));
  EXPECT_EQ(abandoned_holds(), 0U);
}

TEST_F(Interruption, OfAnUploadThroughTheFullRingLosesNoPinnedMemory) {
  make({65536});
  const Strided source = packed_image(random_, DType::float32, {65536});
  hold_work(true);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(is_interrupted([&] { world_->transfers().upload_through_ring(tensor_, source.ref); }));
  }
  hold_work(false);
  world_->transfers().upload_through_ring(tensor_, source.ref)->wait();
  world_->settle();
  EXPECT_EQ(values_on_device(tensor_, image_), values_of(source.ref));
  EXPECT_EQ(abandoned_holds(), 0U);
}

}  // namespace
}  // namespace ferry::test
