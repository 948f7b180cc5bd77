// Captures of others survive whatever we are asked meanwhile.
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::fake;

class WhileCapturing : public ::testing::TestWithParam<int> {
 protected:
  WhileCapturing() : world_(WorldOptions{}) {}

  Random random_{2};
  TransferWorld world_;
};

// In every mode: global, of this thread, relaxed.
TEST_P(WhileCapturing, TransfersOnOtherStreamsGoOnAndTheCaptureSurvives) {
  const CUstream capturing = world_.made_stream();
  const CUstream other = world_.made_stream();
  {
    const Strided image = packed_image(random_, DType::float32, {40, 50});
    const Strided pageable = packed_image(random_, DType::float32, {40, 50});
    const DeviceTensor tensor = world_.tensor(image, other);
    const HostTarget target = world_.target(image);
    const Strided small = packed_image(random_, DType::float32, {5, 7});
    const DeviceTensor staged = world_.tensor(small, other);
    const HostTarget small_target = world_.target(small);
    fake<void()>("fake_drain")();
    ASSERT_EQ(fake<int(void*, int, int)>("fake_begin_capture")(capturing, GetParam(), 0), 0);
    Transfers::Batch batch(world_.transfers());
    batch.download(tensor, target, Snapshot::never, BackPressure::raise);
    batch.download(staged, small_target, Snapshot::automatic, BackPressure::wait);
    const auto pending = batch.close();
    while (!pending->done()) {
    }
    EXPECT_EQ(values_of(target.ref), values_of(image.ref));
    EXPECT_EQ(values_of(small_target.ref), values_of(small.ref));
    world_.transfers().download_through_ring(tensor, pageable.ref);
    EXPECT_EQ(values_of(pageable.ref), values_of(image.ref));
    world_.transfers().upload_through_ring(tensor, pageable.ref)->wait();
    world_.transfers().reap();
    void* graph = nullptr;
    EXPECT_EQ(fake<int(void*, int, void**)>("fake_end_capture")(capturing, 0, &graph), 0);
    fake<int(void*)>("fake_destroy_graph")(graph);
  }
  EXPECT_EQ(world_.end(), "");
}

TEST_P(WhileCapturing, WorkOnTheLegacyStreamIsRefusedWhereItWouldDestroyTheCapture) {
  const CUstream capturing = world_.made_stream(0);  // ordered with the legacy stream
  {
    const Strided image = packed_image(random_, DType::float32, {5, 7});
    const DeviceTensor tensor = world_.tensor(image, cuda::legacy_stream());
    const HostTarget target = world_.target(image);
    fake<void()>("fake_drain")();
    ASSERT_EQ(fake<int(void*, int, int)>("fake_begin_capture")(capturing, GetParam(), 0), 0);
    Transfers::Batch batch(world_.transfers());
    for (const Snapshot snapshot : {Snapshot::never, Snapshot::always}) {
      const std::string said = error_text([&] { batch.download(tensor, target, snapshot, BackPressure::wait); });
      EXPECT_NE(said.find("the legacy default stream, while another stream is being captured"), std::string::npos)
          << said;
    }
    void* graph = nullptr;
    EXPECT_EQ(fake<int(void*, int, void**)>("fake_end_capture")(capturing, 0, &graph), 0);
    fake<int(void*)>("fake_destroy_graph")(graph);
  }
  EXPECT_EQ(world_.end(), "");
}

INSTANTIATE_TEST_SUITE_P(Modes, WhileCapturing, ::testing::Values(0, 1, 2), [](const auto& param) {
  return std::string(param.param == 0 ? "Global" : param.param == 1 ? "ThreadLocal" : "Relaxed");
});

}  // namespace
}  // namespace ferry::test
