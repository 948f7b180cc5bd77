// To devices by the way that is chosen: values, which calls that takes, and what a call waits for.
#include <numeric>

#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::count_of;
using cuda::test::fake;
using cuda::test::hold_work;

class Upload : public ::testing::TestWithParam<const char*> {
 protected:
  void begin(bool kernels = true) {
    WorldOptions options{GetParam(), 3, {}, small_limits()};
    options.limits.kernels = kernels;
    options.limits.ring_nbytes = options.limits.staging_nbytes = 64 << 10;
    world_ = std::make_unique<TransferWorld>(options);
    stream_ = world_->made_stream();
    // Staging is made at its first use.
    const Strided gaps = gapped(4, 4);
    const DeviceTensor warm = world_->tensor(gaps, stream_);
    if (kernels) send(warm, packed_image(random_, DType::float32, {4, 4}).ref);
    world_->settle();
    cuda::test::forget_calls();
  }
  void TearDown() override {
    tensor_ = {};
    EXPECT_EQ(world_->end(), "");
    world_.reset();
  }
  // Every other element of each row.
  Strided gapped(std::int64_t rows, std::int64_t columns) {
    Strided image = packed_image(random_, DType::float32, {rows, 2 * columns});
    image.ref.layout = {{rows, columns}, {8 * columns, 8}, 4};
    return image;
  }
  void make(Strided image) {
    image_ = std::move(image);
    tensor_ = world_->tensor(image_, stream_);
  }
  std::shared_ptr<Pending> send(const DeviceTensor& to, const TensorRef& source) {
    return world_->transfers().upload(to, {source, nullptr, nullptr, {}}, HostMemory::ordinary);
  }
  std::vector<std::byte> arrived() {
    world_->settle();
    return values_on_device(tensor_, image_);
  }
  // Bytes between the elements stay what they were.
  void expect_gaps_untouched() {
    const std::vector<std::byte> now = TransferWorld::memory_of(tensor_).peek();
    for (std::size_t at = 0; at + 8 <= now.size(); at += 8) {
      for (std::size_t i = 4; i < 8; ++i) ASSERT_EQ(now[at + i], image_.memory[at + i]) << at;
    }
  }

  Random random_{11};
  std::unique_ptr<TransferWorld> world_;
  CUstream stream_ = nullptr;
  Strided image_;
  DeviceTensor tensor_;
};

TEST_P(Upload, UnpacksAScatteredTensorByOneCopyAndOneKernel) {
  begin();
  make(gapped(30, 40));
  Strided source = packed_image(random_, DType::float32, {30, 40});
  const std::vector<std::byte> wanted = values_of(source.ref);
  const auto pending = send(tensor_, source.ref);
  std::fill(source.memory.begin(), source.memory.end(), std::byte{0x5A});  // as the caller may
  EXPECT_EQ(count_of("cuMemcpyHtoDAsync"), 1);
  EXPECT_EQ(count_of("cuLaunchKernel"), 1);
  pending->wait();
  EXPECT_EQ(arrived(), wanted);
  expect_gaps_untouched();
}

TEST_P(Upload, UnpacksALargeOneInPartsWithBoundedMemory) {
  begin();
  make(gapped(400, 128));  // 200 KiB, where staging and ring have 64
  Strided source = packed_image(random_, DType::float32, {128, 400});
  source.ref.layout = {{400, 128}, {4, 1600}, 4};
  const std::vector<std::byte> wanted = values_of(source.ref);
  send(tensor_, source.ref);
  std::fill(source.memory.begin(), source.memory.end(), std::byte{0x5A});
  EXPECT_GE(count_of("cuLaunchKernel"), 13);
  EXPECT_EQ(count_of("cuMemAllocAsync"), 0);
  EXPECT_EQ(arrived(), wanted);
  expect_gaps_untouched();
}

TEST_P(Upload, CastsToLargerElementsOnTheDevice) {
  begin();
  make(packed_image(random_, DType::float32, {50, 60}));
  const Strided source = random_strided(random_, DType::uint8, {50, 60});
  const std::vector<std::byte> bytes = values_of(source.ref);
  send(tensor_, source.ref);
  EXPECT_EQ(count_of("cuLaunchKernel"), 1);
  std::vector<float> got(bytes.size());
  std::memcpy(got.data(), arrived().data(), 4 * got.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(got[i], static_cast<float>(bytes[i])) << i;
}

TEST_P(Upload, CastsToSmallerElementsOnTheHostAndUnpacks) {
  begin();
  make(gapped(20, 30));
  std::vector<double> source(600);
  std::iota(source.begin(), source.end(), 0.25);
  send(tensor_, tensor(source.data(), DType::float64, {20, 30}, {240, 8}));
  std::vector<float> got(600);
  std::memcpy(got.data(), arrived().data(), 2400);
  for (std::size_t i = 0; i < 600; ++i) ASSERT_EQ(got[i], static_cast<float>(source[i]));
}

TEST_P(Upload, ReadsSwappedBytesAndKeepsTheDestinationsMarks) {
  begin();
  make(gapped(8, 8));
  tensor_.ref.negated = true;  // the device holds the negative of its value
  std::vector<std::byte> source(256);
  for (std::size_t i = 0; i < 64; ++i) source[4 * i + 1] = std::byte{0x80}, source[4 * i] = std::byte{0x3F};  // 1.0
  TensorRef ref = tensor(source.data(), DType::float32, {8, 8}, {32, 4});
  ref.byte_swapped = true;
  send(tensor_, ref);
  std::vector<float> got(64);
  std::memcpy(got.data(), arrived().data(), 256);
  for (const float value : got) EXPECT_EQ(value, -1.0F);
}

TEST_P(Upload, BringsRepeatedElementsOnceOverTheLink) {
  begin();
  make(packed_image(random_, DType::float32, {32, 100}));
  const Strided row = packed_image(random_, DType::float32, {100});
  TensorRef source = row.ref;
  source.layout = {{32, 100}, {0, 4}, 4};
  const std::vector<std::byte> wanted = values_of(source);
  send(tensor_, source);
  EXPECT_EQ(count_of("cuLaunchKernel"), 1);
  EXPECT_EQ(arrived(), wanted);
}

TEST_P(Upload, ReadsPinnedMemoryDirectlyAndWaitsForThatAlone) {
  begin();
  make(gapped(30, 40));
  const HostTarget source = world_->target(packed_image(random_, DType::float32, {30, 40}));
  const std::vector<std::byte> wanted = values_of(source.ref);
  world_->transfers().upload(tensor_, source, HostMemory::pinned);
  std::fill_n(source.ref.data, 4800, std::byte{0x5A});  // as the caller may
  EXPECT_EQ(count_of("cuMemcpyHtoDAsync"), 1);
  EXPECT_EQ(count_of("cuLaunchKernel"), 1);
  EXPECT_EQ(arrived(), wanted);
  expect_gaps_untouched();
}

TEST_P(Upload, ReadsPinnedMemoryThatIsLargerThanTheRingDirectlyIntoABlock) {
  begin(false);
  make(packed_image(random_, DType::float32, {300, 60}));
  const HostTarget source = world_->target(packed_image(random_, DType::float32, {300, 60}));
  const std::vector<std::byte> wanted = values_of(source.ref);
  const auto pending = world_->transfers().upload(tensor_, source, HostMemory::pinned);
  EXPECT_TRUE(pending->done());
  std::fill_n(source.ref.data, 72'000, std::byte{0x5A});
  EXPECT_EQ(count_of("cuLaunchKernel"), 0);
  EXPECT_EQ(arrived(), wanted);
}

TEST_P(Upload, ReadsPinnedMemoryInAnyOrder) {
  begin();
  make(packed_image(random_, DType::float32, {40, 30}));
  HostTarget source = world_->target(packed_image(random_, DType::float32, {30, 40}));
  source.ref.layout = {{40, 30}, {4, 160}, 4};
  const std::vector<std::byte> wanted = values_of(source.ref);
  world_->transfers().upload(tensor_, source, HostMemory::pinned);
  std::fill_n(source.ref.data, 4800, std::byte{0x5A});
  EXPECT_EQ(count_of("cuMemcpyHtoDAsync"), 1);
  EXPECT_EQ(arrived(), wanted);
}

TEST_P(Upload, LeavesScatteredTensorsToTheirLibraryWithoutKernels) {
  begin(false);
  make(gapped(8, 8));
  const Strided source = packed_image(random_, DType::float32, {8, 8});
  EXPECT_EQ(send(tensor_, source.ref), nullptr);
  EXPECT_EQ(count_of("cuMemcpyHtoDAsync"), 0);
  make(packed_image(random_, DType::float32, {8, 8}));
  EXPECT_NE(send(tensor_, source.ref), nullptr);
  EXPECT_EQ(arrived(), values_of(source.ref));
}

TEST_P(Upload, OfNothingIsDone) {
  begin();
  make(packed_image(random_, DType::float32, {0, 3}));
  EXPECT_TRUE(send(tensor_, tensor(nullptr, DType::uint8, {0, 3}, {3, 1}))->done());
}

TEST_P(Upload, KeepsTheDestinationUntilItIsFilled) {
  begin();
  make(gapped(30, 40));
  const std::weak_ptr<void> memory = tensor_.owner;
  hold_work(true);
  const auto pending = send(tensor_, packed_image(random_, DType::float32, {30, 40}).ref);
  tensor_ = {};
  EXPECT_FALSE(memory.expired());
  EXPECT_FALSE(pending->done());
  hold_work(false);
  world_->settle();
  EXPECT_TRUE(memory.expired());
}

TEST_P(Upload, ComesAfterAndBeforeWhatItsStreamDoes) {
  begin();
  make(gapped(16, 16));
  const Strided first = packed_image(random_, DType::float32, {16, 16});
  const Strided last = packed_image(random_, DType::float32, {16, 16});
  for (int i = 0; i < 6; ++i) send(tensor_, first.ref);
  TransferWorld::memory_of(tensor_).write_later(image_.memory, stream_);
  send(tensor_, last.ref);
  EXPECT_EQ(arrived(), values_of(last.ref));
}

INSTANTIATE_TEST_SUITE_P(Schedules, Upload, ::testing::Values("lazy", "eager", "shuffled", "threaded"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace ferry::test
