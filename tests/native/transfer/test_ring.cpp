// Through pinned memory of ours, between devices and memory that is not pinned.
#include <atomic>
#include <thread>

#include "transfer/abandoned.hpp"
#include "transfer/host_ring.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::count_of;
using cuda::test::fake;
using cuda::test::hold_work;
using cuda::test::live;

class Ring : public ::testing::Test {
 protected:
  void begin(WorldOptions options = {}) {
    world_ = std::make_unique<TransferWorld>(options);
    stream_ = world_->made_stream();
  }
  void TearDown() override {
    tensor_ = {};
    EXPECT_EQ(world_->end(), "");
    world_.reset();
  }
  void make(DType dtype, const Extents& shape) {
    image_ = packed_image(random_, dtype, shape);
    tensor_ = world_->tensor(image_, stream_);
  }
  // Every place of one value type in the order of the elements.
  template <class T>
  static std::vector<T> read(const std::vector<std::byte>& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  Random random_{5};
  std::unique_ptr<TransferWorld> world_;
  CUstream stream_ = nullptr;
  Strided image_;
  DeviceTensor tensor_;
};

TEST_F(Ring, CopiesOfTheNextPartsAreEnqueuedBeforeTheHostReadsTheFirst) {
  begin();
  make(DType::float32, {3072});  // three parts of 4 KiB
  const Strided destination = packed_image(random_, DType::float32, {3072});
  cuda::test::forget_calls();
  world_->transfers().download_through_ring(tensor_, destination.ref);
  EXPECT_EQ(values_of(destination.ref), values_of(image_.ref));
  std::vector<std::string> order;
  for (const std::string& name : cuda::test::names_of_calls()) {
    if (name == "cuMemcpyDtoHAsync" || name == "cuEventQuery" || name == "cuEventSynchronize") order.push_back(name);
  }
  ASSERT_GE(order.size(), 4U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(order[i], "cuMemcpyDtoHAsync");
}

TEST_F(Ring, CastsOnTheWayToTheHost) {
  begin();
  make(DType::uint8, {40, 50});
  std::vector<double> got(2000);
  const TensorRef destination = tensor(got.data(), DType::float64, {40, 50}, {8, 320});
  world_->transfers().download_through_ring(tensor_, destination);
  const std::vector<std::byte> from = values_of(image_.ref);
  for (std::int64_t row = 0; row < 40; ++row) {
    for (std::int64_t column = 0; column < 50; ++column) {
      ASSERT_EQ(got[static_cast<std::size_t>(row + 40 * column)],
                static_cast<double>(from[static_cast<std::size_t>(row * 50 + column)]));
    }
  }
}

TEST_F(Ring, CastsAndPacksOnTheWayToTheDevice) {
  begin();
  make(DType::float32, {40, 50});
  const Strided source = random_strided(random_, DType::uint8, {40, 50});
  world_->transfers().upload_through_ring(tensor_, source.ref)->wait();
  world_->settle();
  const std::vector<float> got = read<float>(values_on_device(tensor_, image_));
  const std::vector<std::byte> wanted = values_of(source.ref);
  for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(got[i], static_cast<float>(wanted[i]));
}

TEST_F(Ring, KeepsTheDestinationsMarksOnTheWayToTheDevice) {
  begin();
  make(DType::float32, {16});
  tensor_.ref.negated = true;  // the device holds the negative of its value
  std::vector<float> source{1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12, 13, -14, 15, -16};
  world_->transfers().upload_through_ring(tensor_, over(source, DType::float32))->wait();
  const std::vector<float> held = read<float>(world_->memory_of(tensor_).peek());
  for (std::size_t i = 0; i < source.size(); ++i) EXPECT_EQ(held[i], -source[i]);
}

TEST_F(Ring, BringsAWindowOfTheDevicesMemoryWithItsRepetitions) {
  begin();
  make(DType::float32, {4096});
  tensor_.ref.layout = {{100, 3, 40}, {0, 4, 4}, 4};  // repeated, and overlapping
  const Strided destination = packed_image(random_, DType::float32, {100, 3, 40});
  cuda::test::forget_calls();
  world_->transfers().download_through_ring(tensor_, destination.ref);
  const std::vector<float> base = read<float>(image_.memory);
  const std::vector<float> got = read<float>(values_of(destination.ref));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &base[i % 120 / 40 + i % 40], 4), 0) << i;
  }
  EXPECT_EQ(count_of("cuMemcpyDtoHAsync"), 1);
}

TEST_F(Ring, RefusesElementsFarApartNamingContiguous) {
  WorldOptions options;
  options.limits.ring_nbytes = std::size_t{1} << 20;
  begin(options);
  make(DType::uint8, {1});
  tensor_.ref.layout = {{40, 40, 40}, {-7, 7001, 7000001}, 1};
  Strided destination = packed_image(random_, DType::uint8, {40, 40, 40});
  cuda::test::forget_calls();
  const std::string said =
      error_text([&] { static_cast<void>(world_->transfers().upload_through_ring(tensor_, destination.ref)); });
  EXPECT_NE(said.find("too far apart"), std::string::npos) << said;
  EXPECT_NE(said.find(".contiguous()"), std::string::npos) << said;
  EXPECT_EQ(count_of("cuMemcpyHtoDAsync"), 0);
}

TEST_F(Ring, RefusesPackedElementsThatWouldHaveToBeTakenApart) {
  begin();
  make(DType::float4_e2m1fn_x2, {8});
  const Strided destination = packed_image(random_, DType::float4_e2m1fn, {16});
  const std::string said = error_text([&] { world_->transfers().download_through_ring(tensor_, destination.ref); });
  EXPECT_NE(said.find("packed elements"), std::string::npos) << said;
  const Strided packed = packed_image(random_, DType::float4_e2m1fn_x2, {8});
  world_->transfers().download_through_ring(tensor_, packed.ref);
  EXPECT_EQ(packed.memory, image_.memory);
}

TEST_F(Ring, PinsNoMoreSlotsThanItNeeds) {
  begin();
  make(DType::float32, {64});
  const Strided destination = packed_image(random_, DType::float32, {64});
  for (int i = 0; i < 20; ++i) world_->transfers().download_through_ring(tensor_, destination.ref);
  EXPECT_EQ(live("host_registrations"), 1);
}

TEST_F(Ring, TakesManySmallUploadsWithoutWaiting) {
  WorldOptions options;
  options.limits.ring_nbytes = 256 << 10;
  begin(options);
  make(DType::float32, {2});
  hold_work(true);
  const Strided source = packed_image(random_, DType::float32, {2});
  for (int i = 0; i < 200; ++i) static_cast<void>(world_->transfers().upload_through_ring(tensor_, source.ref));
  EXPECT_EQ(count_of("cuEventSynchronize"), 0);
  hold_work(false);
  world_->settle();
  EXPECT_EQ(values_on_device(tensor_, image_), values_of(source.ref));
}

TEST_F(Ring, IsSmallerWhereTheSystemLocksNoMore) {
  WorldOptions options;
  options.limits.ring_nbytes = std::size_t{1} << 20;  // slots of 256 KiB
  begin(options);
  fake<void(std::uint64_t)>("fake_host_budget")(std::uint64_t{200} << 10);
  make(DType::float32, {std::int64_t{100} << 10});
  const Strided destination = packed_image(random_, DType::float32, {std::int64_t{100} << 10});
  world_->transfers().download_through_ring(tensor_, destination.ref);
  EXPECT_EQ(destination.memory, image_.memory);
  EXPECT_LE(live("host_bytes"), 200 << 10);
}

TEST_F(Ring, SaysWhereNothingCanBeLocked) {
  WorldOptions options;
  options.presets = {"register_not_permitted"};
  options.limits.ring_nbytes = std::size_t{1} << 20;
  begin(options);
  fake<void(std::uint64_t)>("fake_host_budget")(0);
  make(DType::float32, {64});
  const Strided destination = packed_image(random_, DType::float32, {64});
  for (int i = 0; i < 2; ++i) {
    const std::string said = error_text([&] { world_->transfers().download_through_ring(tensor_, destination.ref); });
    EXPECT_NE(said.find("bytes of host memory"), std::string::npos) << said;
  }
  EXPECT_EQ(count_of("cuMemcpyDtoHAsync"), 0);
}

TEST_F(Ring, ServesManyThreadsAtOnce) {
  WorldOptions options;
  options.schedule = "threaded";
  begin(options);
  constexpr int threads = 6;
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  std::vector<CUstream> streams;
  for (int i = 0; i < threads; ++i) streams.push_back(world_->made_stream());
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      cuda::test::use_device(0);
      Random random(static_cast<std::uint32_t>(i));
      for (int round = 0; round < 10; ++round) {
        const Strided image = packed_image(random, DType::float32, {5000});
        const Strided source = packed_image(random, DType::float32, {5000});
        const Strided destination = packed_image(random, DType::float32, {5000});
        const DeviceTensor tensor = world_->tensor(image, streams[static_cast<std::size_t>(i)]);
        static_cast<void>(world_->transfers().upload_through_ring(tensor, source.ref));
        world_->transfers().download_through_ring(tensor, destination.ref);
        if (destination.memory != source.memory) ++wrong;
      }
    });
  }
  for (std::thread& one : all) one.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Ring, AbandonsASlotWhoseCopyNobodyCanWaitFor) {
  begin();
  make(DType::float32, {64});
  const Strided source = packed_image(random_, DType::float32, {64});
  const std::uint64_t before = abandoned_holds();
  cuda::test::fail("cuEventRecord", 1, 999);
  const std::string said =
      error_text([&] { static_cast<void>(world_->transfers().upload_through_ring(tensor_, source.ref)); });
  EXPECT_NE(said.find("cuEventRecord"), std::string::npos) << said;
  EXPECT_EQ(abandoned_holds() - before, 2U);  // the slot and the tensor
  cuda::test::clear_faults();
  world_->transfers().upload_through_ring(tensor_, source.ref)->wait();
  EXPECT_EQ(values_on_device(tensor_, image_), values_of(source.ref));
  tensor_ = {};
  world_->settle();
  EXPECT_EQ(live("host_registrations"), 2);  // the abandoned slot stays locked
  fake<void()>("fake_reset")();
  world_ = std::make_unique<TransferWorld>(WorldOptions{});
}

}  // namespace
}  // namespace ferry::test
