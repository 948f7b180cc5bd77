// What a CPU build of torch lacks to hold CUDA tensors: a current device and current streams for each thread, the guard
// that switches devices, and memory that goes back to its stream when the last tensor over it is gone. Built and loaded
// by torch_on_fake_build.py; only headers of c10 are needed.
#include <ATen/dlpack.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <atomic>
#include <cstdint>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr c10::DeviceIndex most_devices = 8;

using UseDevice = void (*)(int);
using Free = int (*)(unsigned long long, void*, int);

UseDevice use_device = nullptr;
Free free_memory = nullptr;
std::atomic<std::uint64_t> world{1}, initialized_world{0};
std::atomic<c10::DeviceIndex> devices{1};

/// Torch's state of one thread. A thread that a former world left behind begins anew.
struct ThreadState {
  std::uint64_t world = 0;
  bool has_context = false;
  c10::DeviceIndex device = 0;
  std::array<std::intptr_t, most_devices> streams{};
};

ThreadState& here() {
  static thread_local ThreadState state;
  const auto now = world.load();
  if (state.world != now) state = ThreadState{now, false, 0, {}};
  return state;
}

c10::DeviceIndex index_of(c10::Device device) { return device.has_index() ? device.index() : here().device; }

void set_device(c10::DeviceIndex device) {
  auto& state = here();
  if (state.has_context && state.device == device) return;
  initialized_world = state.world;
  state.device = device;
  state.has_context = true;
  use_device(device);
}

c10::Stream stream_of(c10::DeviceIndex device) {
  const auto handle = here().streams.at(static_cast<std::size_t>(device));
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, device), static_cast<c10::StreamId>(handle));
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device getDevice() const override { return {c10::kCUDA, here().device}; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const auto before = getDevice();
    if (device.has_index()) set_device(device.index());
    return before;
  }
  void setDevice(c10::Device device) const override {
    if (device.has_index()) set_device(device.index());
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) set_device(device.index());
  }
  c10::Stream getStream(c10::Device device) const override { return stream_of(index_of(device)); }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, index_of(device)));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const auto before = stream_of(index_of(stream.device()));
    here().streams.at(static_cast<std::size_t>(stream.device_index())) = static_cast<std::intptr_t>(stream.id());
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return devices; }
};

struct Memory {
  DLManagedTensor managed;
  std::int64_t nbytes;
  void* stream;

  static void release(DLManagedTensor* managed) {
    auto* self = static_cast<Memory*>(managed->manager_ctx);
    const auto& tensor = managed->dl_tensor;
    free_memory(reinterpret_cast<unsigned long long>(tensor.data), self->stream, tensor.device.device_id);
    delete self;
  }
};

}  // namespace

EXPORT void torch_on_fake_connect(UseDevice use, Free give_back) {
  use_device = use;
  free_memory = give_back;
  static const c10::impl::DeviceGuardImplRegistrar registered(c10::kCUDA, new Guard);
}

/// The driver was reset: no thread has a context, and all are on device 0 and default streams.
EXPORT void torch_on_fake_forget(int device_count) {
  ++world;
  devices = static_cast<c10::DeviceIndex>(device_count);
}

EXPORT int torch_on_fake_devices() { return devices; }

/// As torch's lazy initialisation, which makes no context yet.
EXPORT void torch_on_fake_initialize() { initialized_world = world.load(); }
EXPORT int torch_on_fake_is_initialized() { return initialized_world == world; }

/// As before any use of the runtime: the current device's primary context is current to the thread.
EXPORT void torch_on_fake_need_context() {
  if (!here().has_context) set_device(here().device);
}

EXPORT int torch_on_fake_device() { return here().device; }
EXPORT void torch_on_fake_set_device(int device) { set_device(static_cast<c10::DeviceIndex>(device)); }

/// Handles as torch gives them: NULL is the default stream.
EXPORT void* torch_on_fake_stream(int device) {
  return reinterpret_cast<void*>(here().streams.at(static_cast<std::size_t>(device)));
}
EXPORT void torch_on_fake_set_stream(int device, void* stream) {
  here().streams.at(static_cast<std::size_t>(device)) = reinterpret_cast<std::intptr_t>(stream);
}

/// The entry of the exchange table.
EXPORT int torch_on_fake_current_work_stream(DLDeviceType type, std::int32_t device, void** out) {
  *out = type == kDLCUDA ? torch_on_fake_stream(device) : nullptr;
  return 0;
}

/// Bytes of device memory as a DLPack tensor; they go back in the order of `stream`.
EXPORT DLManagedTensor* torch_on_fake_wrap(void* address, std::int64_t nbytes, int device, void* stream) {
  auto* memory = new Memory{{}, nbytes, stream};
  memory->managed.manager_ctx = memory;
  memory->managed.deleter = &Memory::release;
  auto& tensor = memory->managed.dl_tensor;
  tensor.data = address;
  tensor.device = {kDLCUDA, device};
  tensor.ndim = 1;
  tensor.dtype = {kDLUInt, 8, 1};
  tensor.shape = &memory->nbytes;
  return &memory->managed;
}
