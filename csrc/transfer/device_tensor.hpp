// A borrowed description of a tensor in device memory.
#pragma once

#include <memory>

#include "core/tensor_ref.hpp"
#include "cuda/stream.hpp"

namespace ferry {

struct DeviceTensor {
  TensorRef ref;  // `data` is a device address: never read by the host
  int device = 0;
  cuda::CUstream stream = nullptr;  // the stream that its present value is ordered in
  std::shared_ptr<void> owner;      // keeps the memory alive; may be dropped by any thread, without the GIL
};

[[nodiscard]] inline cuda::CUdeviceptr device_address(const std::byte* data) noexcept {
  return reinterpret_cast<cuda::CUdeviceptr>(data);
}

}  // namespace ferry
