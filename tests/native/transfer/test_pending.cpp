// Waiting, and what is told when the work failed.
#include "../cuda/child.hpp"
#include "transfer/abandoned.hpp"
#include "transfer/pending.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::count_of;
using cuda::test::fake;
using cuda::test::hold_work;
using cuda::test::in_child;
using namespace std::chrono_literals;

class PendingWork : public ::testing::Test {
 protected:
  PendingWork() : world_(std::make_unique<TransferWorld>(WorldOptions{})) {
    image_ = packed_image(random_, DType::float32, {5, 7});
    tensor_ = world_->tensor(image_, world_->made_stream());
    target_ = world_->target(image_);
  }
  std::shared_ptr<Pending> download(Snapshot snapshot = Snapshot::never) {
    Transfers::Batch batch(world_->transfers());
    batch.download(tensor_, target_, snapshot, BackPressure::raise);
    return batch.close();
  }
  void expect_clean_end(std::shared_ptr<Pending> pending = nullptr) {
    pending.reset();
    tensor_ = {};
    target_ = {};
    EXPECT_EQ(world_->end(), "");
  }

  Random random_{3};
  std::unique_ptr<TransferWorld> world_;
  Strided image_;
  DeviceTensor tensor_;
  HostTarget target_;
};

TEST_F(PendingWork, IsNotDoneWhileTheDeviceIsBusyAndDoneAfterwards) {
  hold_work(true);
  auto pending = download();
  EXPECT_FALSE(pending->done());
  EXPECT_FALSE(pending->wait_for(2ms));
  hold_work(false);
  EXPECT_TRUE(pending->wait_for(10s));
  EXPECT_TRUE(pending->done());
  EXPECT_EQ(values_of(target_.ref), values_of(image_.ref));
  expect_clean_end(std::move(pending));
}

TEST_F(PendingWork, AsksNothingMoreOnceItIsDone) {
  auto pending = download();
  pending->wait();
  cuda::test::forget_calls();
  EXPECT_TRUE(pending->done());
  pending->wait();
  EXPECT_TRUE(pending->wait_for(0ns));
  EXPECT_TRUE(cuda::test::calls().empty());
  expect_clean_end(std::move(pending));
}

TEST_F(PendingWork, SleepsInTheDriverAndBurnsNoCore) {
  fake<void()>("fake_clear_trace")();
  download()->wait();
  EXPECT_EQ(cuda::test::live("busy_waits"), 0);
  expect_clean_end();
}

TEST_F(PendingWork, ThatFailedSaysThatAnEarlierOperationFailedEveryTime) {
  cuda::test::fail("execution", 1, cuda::result::illegal_address);
  auto pending = download();
  for (int i = 0; i < 2; ++i) {
    const std::string said = error_text([&] { pending->wait(); });
    EXPECT_NE(said.find("an earlier operation on this device failed"), std::string::npos) << said;
  }
  EXPECT_EQ(error_text([&] { static_cast<void>(pending->done()); }), error_text([&] { pending->wait(); }));
  const std::string next = error_text([&] { download(); });
  EXPECT_NE(next.find("an earlier operation on this device failed"), std::string::npos) << next;
}

TEST_F(PendingWork, OfADeviceThatWasResetIsAnError) {
  hold_work(true);
  auto pending = download();
  cuda::test::reset_device(0);
  hold_work(false);
  const std::string said = error_text([&] { pending->wait(); });
  EXPECT_NE(said.find("do not reset a device"), std::string::npos) << said;
  EXPECT_EQ(cuda::test::fake_text("fake_violations").find("was used after it was destroyed"), std::string::npos);
  fake<void()>("fake_clear_violations")();
}

TEST_F(PendingWork, OfAnUnclosedBatchIsAbandonedWhenTheDeviceWasReset) {
  const std::uint64_t before = abandoned_holds();
  Transfers::Batch batch(world_->transfers());
  batch.download(tensor_, target_, Snapshot::never, BackPressure::raise);
  cuda::test::reset_device(0);
  const std::string said = error_text([&] { static_cast<void>(batch.close()); });
  EXPECT_NE(said.find("the device was reset meanwhile"), std::string::npos) << said;
  EXPECT_EQ(abandoned_holds() - before, 2U);  // the tensor and the lease
  EXPECT_TRUE(batch.close()->done());
  fake<void()>("fake_clear_violations")();
}

TEST_F(PendingWork, CallsNoDriverInAForkedChild) {
  auto pending = download(Snapshot::always);
  auto batch = std::make_unique<Transfers::Batch>(world_->transfers());
  batch->download(tensor_, target_, Snapshot::never, BackPressure::raise);
  const Strided other = packed_image(random_, DType::float32, {5, 7});
  const std::string said = in_child([&] {
    cuda::test::forget_calls();
    std::string answers;
    const auto note = [&](const std::string& text) { answers += text.empty() ? "no error;" : "error;"; };
    note(error_text([&] { pending->wait(); }));
    note(error_text([&] { static_cast<void>(pending->done()); }));
    note(error_text([&] { static_cast<void>(batch->close()); }));
    note(error_text([&] { download(); }));
    note(error_text([&] { world_->transfers().download_through_ring(tensor_, other.ref); }));
    note(error_text([&] { static_cast<void>(world_->transfers().upload_through_ring(tensor_, other.ref)); }));
    world_->transfers().reap();
    batch.reset();
    return answers + std::to_string(cuda::test::calls().size()) + " calls";
  });
  EXPECT_EQ(said, "error;error;error;error;error;error;0 calls");
  pending->wait();
  batch->close()->wait();
  batch.reset();
  EXPECT_EQ(values_of(target_.ref), values_of(image_.ref));
  expect_clean_end(std::move(pending));
}

}  // namespace
}  // namespace ferry::test
