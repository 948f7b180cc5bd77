#include "bind/device_leaf.hpp"

#include <atomic>
#include <cstdint>

#include "bind/device_path.hpp"
#include "bind/errors.hpp"
#include "bind/execute.hpp"
#include "bind/gil.hpp"
#include "bind/torch_source.hpp"
#include "cuda/capture.hpp"
#include "dlpack/describe.hpp"
#include "transfer/arrival.hpp"
#include "transfer/captured.hpp"

namespace ferry::bind {
namespace {

constexpr int most_known_devices = 64;
std::atomic<std::uint64_t> known_devices{0};

bool is_known(int device) noexcept {
  return device >= 0 && device < most_known_devices && (known_devices.load() >> device & 1) != 0;
}

// Is there a capture that a copy in this stream would become part of, or destroy?
bool is_in_capture(int device, std::int64_t stream) {
  const auto handle = cuda::stream_from_dlpack(stream);
  const GilReleased released(true);
  return handle && capture_of(transfers(), device, *handle) != cuda::CaptureState::none;
}

bool is_captured(const DeviceTensor& tensor) {
  const GilReleased released(true);
  cuda::Runtime& runtime = transfers().runtime();
  const cuda::ContextScope scope = runtime.enter(tensor.device);
  return cuda::capture_state(runtime.functions(), tensor.stream) != cuda::CaptureState::none;
}

// How it will lie in host memory, and the block on the device.
struct PlainBlock {
  DeviceSource source;
  Source described;
};

std::optional<PlainBlock> read_block(PyObject* tensor, const FastType& type) {
  TorchReading reading;
  if (!read_torch(tensor, type, reading, kDLCUDA) || reading.conjugated || reading.negated) return std::nullopt;
  const int device = reading.dl.device.device_id;
  if (!is_known(device)) return std::nullopt;
  const auto stream = work_stream_of(type.type, device);
  if (!stream || is_in_capture(device, *stream)) return std::nullopt;
  PlainBlock block;
  block.described.ref = describe(reading.dl);
  const Arrival arrival = arrival_of(block.described.ref.layout, true, true);
  if (!arrival.as_block || arrival.nbytes == 0) return std::nullopt;
  block.source =
      device_source_over(reinterpret_cast<std::uintptr_t>(block.described.ref.data), block.described.ref.layout,
                         block.described.ref.dtype, device, *stream, std::move(reading.storage));
  block.described.ref.layout.strides = arrival.strides;
  return block;
}

}  // namespace

PyRef DeviceLeaves::add(PyObject* tensor, const FastType& type, const Request& request) {
  if (known_devices.load() == 0 || transfers_if_used() == nullptr || request.copy == CopyPolicy::never) return {};
  const auto block = read_block(tensor, type);
  if (!block) return {};
  Request arriving = request;
  arriving.private_memory = true;
  const Decision decision = decide(block->described.ref, arriving);
  if (decision.path != Path::view) return {};
  const DeviceTensor& read = block->source.tensor;
  if (read.device != device_ || read.stream != stream_) {  // asked once for a run of tensors
    if (is_captured(read)) return {};
    device_ = read.device;
    stream_ = read.stream;
  }
  if (!fetch_) fetch_.emplace("never", "wait");
  const auto arrived = fetch_->add(block->source, block->described, true);
  if (!arrived) return {};
  if (!info(decision.result_dtype).numpy_native) warn_about_extension(decision.result_dtype);
  return execute(*arrived, decision);
}

void DeviceLeaves::settle() {
  if (!fetch_) return;
  const std::shared_ptr<const Pending> pending = fetch_->close();
  fetch_.reset();
  const GilReleased released(true);
  pending->wait();
  transfers().reap();  // the tensors' memory is let go of now
}

void note_known_device(int device) noexcept {
  if (device >= 0 && device < most_known_devices) known_devices.fetch_or(std::uint64_t{1} << device);
}

}  // namespace ferry::bind
