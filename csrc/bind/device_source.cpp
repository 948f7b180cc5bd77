#include "bind/device_source.hpp"

#include <string>
#include <utility>

#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/gil.hpp"
#include "dlpack/describe.hpp"

namespace ferry::bind {
namespace {

cuda::CUstream ordering_stream(std::int64_t number) {
  const auto stream = cuda::stream_from_dlpack(number);
  if (stream) return *stream;
  throw Error(ErrorKind::device, "stream=-1", "a copy must be ordered after the work that makes the values",
              "name the stream of that work, or wait for it and pass the legacy stream: stream=1");
}

DeviceSource require_cuda(ManagedSource managed, cuda::CUstream stream) {
  if (managed.device.device_type != kDLCUDA) {
    throw Error(ErrorKind::device, std::string("a DLPack tensor on device ") + device_name(managed.device.device_type),
                "only CUDA devices are copied from natively", "copy it to the host in its own library first");
  }
  DeviceSource source;
  source.tensor.ref = managed.source.ref;
  source.tensor.device = managed.device.device_id;
  source.tensor.stream = stream;
  source.tensor.owner = shared_owner(std::move(managed.source.owner));
  return source;
}

}  // namespace

std::shared_ptr<void> shared_owner(PyRef object) {
  return {static_cast<void*>(object.release()), [](void* owned) { release_reference(owned); }};
}

DeviceSource device_source_from_capsule(PyObject* capsule, std::int64_t stream) {
  const cuda::CUstream ordered = ordering_stream(stream);
  return require_cuda(managed_source_from_capsule(capsule), ordered);
}

DeviceSource device_source_from_exchange(PyObject* producer, std::int64_t stream) {
  const cuda::CUstream ordered = ordering_stream(stream);
  return require_cuda(managed_source_from_exchange(producer), ordered);
}

DeviceSource device_source_over(std::uintptr_t address, const Layout& layout, DType dtype, int device,
                                std::int64_t stream, PyRef owner) {
  DeviceSource source;
  source.tensor.ref.data = reinterpret_cast<std::byte*>(address);
  source.tensor.ref.dtype = dtype;
  source.tensor.ref.layout = layout;
  source.tensor.device = device;
  source.tensor.stream = ordering_stream(stream);
  source.tensor.owner = shared_owner(std::move(owner));
  return source;
}

std::optional<std::int64_t> work_stream_of(PyTypeObject* type, int device) {
  const FastType* fast = fast_type(type);
  if (fast == nullptr || fast->api->current_work_stream == nullptr) return std::nullopt;
  void* handle = nullptr;
  if (fast->api->current_work_stream(kDLCUDA, device, &handle) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(cuda::stream_from_table(handle)));
}

}  // namespace ferry::bind
