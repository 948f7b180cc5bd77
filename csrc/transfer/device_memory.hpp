// Device memory that staging is made of.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "cuda/stream.hpp"

namespace ferry {

// Address, and what keeps it.
struct DeviceMemory {
  cuda::CUdeviceptr address = 0;
  std::shared_ptr<void> owner;
  cuda::CUstream stream = cuda::legacy_stream();  // what earlier users of the memory still do there ends in this stream
};

// From the producer's own allocator. Nothing when there is none. Called while no context of ours is current.
using StagingSource = std::function<std::optional<DeviceMemory>(int device, std::size_t nbytes)>;

}  // namespace ferry
