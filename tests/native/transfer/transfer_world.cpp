#include "transfer_world.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace ferry::test {

using cuda::test::as_somebody_else;
using cuda::test::driver_function;
using cuda::test::fake;
using cuda::test::live;

namespace {

// An image that the fake takes, whatever was built into the product.
const std::string& fake_image() {
  static const std::string file = [] {
    std::string made = ::testing::TempDir() + "ferry_transfer_kernels_" + std::to_string(::getpid());
    std::ofstream(made) << "FAKE";
    return made;
  }();
  return file;
}

}  // namespace

TransferLimits small_limits() {
  TransferLimits limits;
  limits.results_nbytes = std::size_t{16} << 20;
  limits.ring_nbytes = 16 << 10;
  limits.staging_nbytes = 16 << 10;
  limits.largest_snapshot_nbytes = 8 << 10;
  limits.chunk_nbytes = 1 << 10;
  limits.most_in_flight = 8;
  limits.unpacks_from = 256;
  limits.waits_from = 1 << 10;
  limits.kernels = false;
  return limits;
}

FrameworkMemory::FrameworkMemory(std::size_t nbytes, CUstream stream, int device)
    : address_(fake<CUdeviceptr(std::size_t, int)>("fake_alloc")(nbytes, device)),
      nbytes_(nbytes),
      stream_(stream),
      device_(device) {}

FrameworkMemory::~FrameworkMemory() { fake<int(CUdeviceptr, void*, int)>("fake_free")(address_, stream_, device_); }

void FrameworkMemory::write_later(const std::vector<std::byte>& bytes, CUstream stream) const {
  using Write = int(CUdeviceptr, const void*, std::size_t, void*, int);
  EXPECT_EQ(fake<Write>("fake_write_later")(address_, bytes.data(), bytes.size(), stream, device_), 0);
}

std::vector<std::byte> FrameworkMemory::peek() const {
  std::vector<std::byte> bytes(nbytes_);
  EXPECT_EQ(fake<int(CUdeviceptr, void*, std::size_t)>("fake_peek")(address_, bytes.data(), nbytes_), 0);
  return bytes;
}

TransferWorld::TransferWorld(const WorldOptions& options) {
  if (options.limits.kernels) static_cast<void>(::setenv("TENSORFERRY_KERNEL_IMAGE", fake_image().c_str(), 1));
  fake<void()>("fake_reset")();
  for (const char* preset : options.presets) EXPECT_EQ(fake<int(const char*)>("fake_preset")(preset), 1) << preset;
  EXPECT_EQ(fake<int(const char*, std::uint64_t)>("fake_schedule")(options.schedule, options.seed), 1);
  opened_ = cuda::Driver::open(FAKE_CUDA);
  if (opened_.problem) throw opened_.problem->error();
  if (const auto problem = opened_.driver->initialise()) throw problem->error();
  runtime_ = std::make_unique<cuda::Runtime>(*opened_.driver);
  transfers_ = std::make_unique<Transfers>(*runtime_, options.limits);
  cuda::test::use_device(0);
  cuda::test::forget_calls();
}

TransferWorld::~TransferWorld() {
  static_cast<void>(end());
  fake<void()>("fake_reset")();
}

CUstream TransferWorld::made_stream(unsigned flags, int device) {
  cuda::test::use_device(device);
  as_somebody_else(
      [&] { driver_function<int(CUstream*, unsigned)>("cuStreamCreate", 2000)(&streams_.emplace_back(), flags); });
  cuda::test::use_device(0);
  return streams_.back();
}

DeviceTensor TransferWorld::tensor(const Strided& image, CUstream stream, int device) {
  const auto memory = std::make_shared<FrameworkMemory>(image.memory.size(), stream, device);
  memory->write_later(image.memory, stream);
  DeviceTensor tensor;
  tensor.ref = image.ref;
  tensor.ref.data = reinterpret_cast<std::byte*>(memory->address()) + (image.ref.data - image.memory.data());
  tensor.device = device;
  tensor.stream = stream;
  tensor.owner = memory;
  return tensor;
}

FrameworkMemory& TransferWorld::memory_of(const DeviceTensor& tensor) {
  return *static_cast<FrameworkMemory*>(tensor.owner.get());
}

HostTarget TransferWorld::target(const Strided& like, int device) {
  HostTarget target;
  {
    const cuda::ContextScope scope = runtime_->enter(device, cuda::Primary::create);
    target.lease = transfers_->results().lease(scope, like.memory.size());
  }
  if (target.lease == nullptr) throw std::runtime_error("there is no pinned memory");
  std::copy(like.memory.begin(), like.memory.end(), target.lease->data());
  target.ref = like.ref;
  target.ref.data = target.lease->data() + (like.ref.data - like.memory.data());
  return target;
}

void TransferWorld::settle() {
  fake<void()>("fake_drain")();
  for (int i = 0; i < 100 && (i < 4 || transfers_->retired().stats().pending > 0); ++i) transfers_->reap();
}

std::string TransferWorld::end() {
  std::ostringstream said;
  if (transfers_ != nullptr) {
    settle();
    if (transfers_->retired().stats().pending > 0) said << "work is held although nothing is pending\n";
    transfers_.reset();
    runtime_.reset();
    for (const CUstream stream : std::exchange(streams_, {})) {
      as_somebody_else([stream] { driver_function<int(CUstream)>("cuStreamDestroy", 4000)(stream); });
    }
    fake<void()>("fake_drain")();
    for (const char* what : {"device_bytes", "events", "streams", "host_registrations", "pushed_contexts"}) {
      if (live(what) != 0) said << live(what) << " " << what << " are left\n";
    }
  }
  said << cuda::test::fake_text("fake_violations");
  fake<void()>("fake_clear_violations")();
  return said.str();
}

Strided packed_image(Random& random, DType dtype, const Extents& shape) {
  Strided image;
  const std::int64_t itemsize = info(dtype).itemsize;
  image.memory.resize(static_cast<std::size_t>(std::max<std::int64_t>(element_count(shape).value() * itemsize, 1)));
  for (std::byte& byte : image.memory) byte = static_cast<std::byte>(random.bits());
  image.ref = ferry::test::tensor(image.memory.data(), dtype, shape, contiguous_strides(shape, itemsize));
  return image;
}

std::vector<std::byte> values_of(const TensorRef& ref) {
  const std::int64_t count = element_count(ref.layout.shape).value();
  std::vector<std::byte> values;
  values.reserve(static_cast<std::size_t>(count * ref.layout.itemsize));
  for (std::int64_t flat = 0; flat < count; ++flat) {
    const std::byte* element = ref.data + offset_of(ref.layout, flat);
    values.insert(values.end(), element, element + ref.layout.itemsize);
  }
  return values;
}

std::vector<std::byte> values_on_device(const DeviceTensor& tensor, const Strided& image) {
  const std::vector<std::byte> bytes = TransferWorld::memory_of(tensor).peek();
  TensorRef ref = image.ref;
  ref.data = const_cast<std::byte*>(bytes.data()) + (image.ref.data - image.memory.data());
  return values_of(ref);
}

std::string difference(const std::vector<std::byte>& got, const std::vector<std::byte>& wanted,
                       const std::string& what) {
  if (got == wanted) return "";
  std::ostringstream said;
  const auto at = std::mismatch(got.begin(), got.end(), wanted.begin(), wanted.end());
  said << what << ": byte " << at.first - got.begin() << " of " << wanted.size() << " is not as it should be";
  if (at.first != got.end()) said << " (0x" << std::hex << static_cast<int>(*at.first) << ")";
  said << "\n";
  return said.str();
}

}  // namespace ferry::test
