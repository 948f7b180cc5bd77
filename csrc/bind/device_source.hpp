// A tensor in device memory, taken from a Python object.
#pragma once

#include <cstdint>
#include <memory>

#include "bind/source.hpp"
#include "transfer/device_tensor.hpp"

namespace ferry::bind {

// Keeps a Python object alive for the C++ layers: may be copied and dropped by any thread, with or without the GIL.
[[nodiscard]] std::shared_ptr<void> shared_owner(PyRef object);

struct DeviceSource {
  DeviceTensor tensor;
  bool is_snapshot = false;  // made for one call, by work that was enqueued in the same stream
};

// Consumes a DLPack capsule of a CUDA tensor whose present value is ordered in `stream` (DLPack's number).
[[nodiscard]] DeviceSource device_source_from_capsule(PyObject* capsule, std::int64_t stream);

// The same through the exchange table of the producer's type.
[[nodiscard]] DeviceSource device_source_from_exchange(PyObject* producer, std::int64_t stream);

// Memory that somebody described otherwise; `owner` keeps it.
[[nodiscard]] DeviceSource device_source_over(std::uintptr_t address, const Layout& layout, DType dtype, int device,
                                              std::int64_t stream, PyRef owner);

// The stream that a type's exchange table says its producer works in at the moment, as DLPack's number; nothing for
// types whose table does not tell.
[[nodiscard]] std::optional<std::int64_t> work_stream_of(PyTypeObject* type, int device);

}  // namespace ferry::bind
