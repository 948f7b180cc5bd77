// DLPack's description of a tensor, translated to ours and back.
#pragma once

#include <optional>

#include "core/tensor_ref.hpp"
#include "dlpack/abi.hpp"

namespace ferry {

[[nodiscard]] std::optional<DType> dtype_from_dlpack(DLDataType type) noexcept;
[[nodiscard]] DLDataType dtype_to_dlpack(DType dtype) noexcept;

// Host memory, pinned or not, that the CPU may read without waiting for a device.
[[nodiscard]] bool is_host(DLDeviceType device) noexcept;
[[nodiscard]] const char* device_name(DLDeviceType device) noexcept;

// Null strides mean C order; strides of axes of size 0 or 1 mean nothing and are replaced. The caller has checked that
// the device is the host's. Throws Error for what no TensorRef can say.
[[nodiscard]] TensorRef describe(const DLTensor& tensor);

}  // namespace ferry
