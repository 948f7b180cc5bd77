#include "bind/device_leaf.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

#include "bind/device_path.hpp"
#include "bind/errors.hpp"
#include "bind/execute.hpp"
#include "bind/gil.hpp"
#include "bind/torch_source.hpp"
#include "bind/waiting.hpp"
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

// How it will lie in host memory, and the memory on the device.
struct PlainTensor {
  DeviceSource source;
  Source described;
};

// The tensors of a nest that may be gathered.
struct SmallTensors {
  std::size_t nbytes = 0;
  std::size_t count = 0;
};

constexpr int most_nodes = 10'000;  // that are looked at

void count_small(PyObject* node, SmallTensors& found, int& left) {
  if (--left < 0) return;
  if (const FastType* type = fast_type(Py_TYPE(node)); type != nullptr && type->is_torch) {
    TorchReading reading;
    if (!read_torch(node, *type, reading, kDLCUDA)) return;
    const TensorRef ref = describe(reading.dl);
    const auto nbytes = static_cast<std::size_t>(element_count(ref.layout.shape).value_or(0) * ref.layout.itemsize);
    if (nbytes == 0 || nbytes > most_gathered_nbytes || !is_dense(ref.layout)) return;
    found.nbytes += gathered_nbytes(nbytes);
    ++found.count;
  } else if (PyList_CheckExact(node)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(node); ++i) count_small(PyList_GET_ITEM(node, i), found, left);
  } else if (PyTuple_CheckExact(node)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(node); ++i) count_small(PyTuple_GET_ITEM(node, i), found, left);
  } else if (PyDict_CheckExact(node)) {
    PyObject* value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(node, &at, nullptr, &value) != 0;) count_small(value, found, left);
  }
}

std::optional<PlainTensor> read_plain(PyObject* tensor, const FastType& type) {
  TorchReading reading;
  if (!read_torch(tensor, type, reading, kDLCUDA) || reading.conjugated || reading.negated) return std::nullopt;
  const int device = reading.dl.device.device_id;
  if (!is_known(device)) return std::nullopt;
  const auto stream = work_stream_of(type.type, device);
  if (!stream || is_in_capture(device, *stream)) return std::nullopt;
  PlainTensor plain;
  plain.described.ref = describe(reading.dl);
  plain.source =
      device_source_over(reinterpret_cast<std::uintptr_t>(plain.described.ref.data), plain.described.ref.layout,
                         plain.described.ref.dtype, device, *stream, std::move(reading.storage));
  return plain;
}

}  // namespace

PyRef DeviceLeaves::add(PyObject* tensor, const FastType& type, const Request& request) {
  Transfers* const used = known_devices.load() == 0 ? nullptr : transfers_if_used();
  if (used == nullptr || used->runtime().foreign().wanted() || request.copy == CopyPolicy::never) return {};
  auto plain = read_plain(tensor, type);
  if (!plain) return {};
  const DeviceTensor& read = plain->source.tensor;
  if (read.device != device_ || read.stream != stream_) {  // asked once for a run of tensors
    if (is_captured(read)) return {};
    kernels_ = kernels_there(read.device, true);
    device_ = read.device;
    stream_ = read.stream;
  }
  TensorRef& described = plain->described.ref;
  const KernelWish wish{described.dtype, described.dtype, request.order};
  const ArrivalPlan plan = plan_arrival(described, wish, true, kernels_);
  if (plan.arrival.nbytes == 0 || !(plan.arrival.as_block || plan.arrival.by_kernel)) return {};
  described.layout.strides = plan.arrival.strides;
  Request arriving = request;
  arriving.private_memory = true;
  const Decision decision = decide(described, arriving);
  if (decision.path != Path::view) return {};
  if (!fetch_) fetch_.emplace("never", "wait");
  if (PyObject* nest = kernels_ ? std::exchange(nest_, nullptr) : nullptr) {
    SmallTensors small;
    int left = most_nodes;
    count_small(nest, small, left);
    fetch_->expect(small.nbytes, small.count);
  }
  const auto arrived = fetch_->add(plain->source, plain->described, plan);
  if (!arrived) return {};
  if (!info(decision.result_dtype).numpy_native) warn_about_extension(decision.result_dtype);
  return execute(*arrived, decision);
}

void DeviceLeaves::settle() {
  if (!fetch_) return;
  const std::shared_ptr<const Pending> pending = fetch_->close();
  fetch_.reset();
  waiting([&pending] {
    pending->wait();
    transfers().reap();  // the tensors' memory is let go of now
  });
}

void note_known_device(int device) noexcept {
  if (device >= 0 && device < most_known_devices) known_devices.fetch_or(std::uint64_t{1} << device);
}

}  // namespace ferry::bind
