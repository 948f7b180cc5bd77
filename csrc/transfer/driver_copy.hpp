// One move as one copy of the driver.
#pragma once

#include <cstdint>

#include "cuda/driver_functions.hpp"
#include "transfer/moves.hpp"

namespace ferry {

enum class CopyKind : std::uint8_t { to_host, to_device, on_device };

// Both ends as addresses: of the device or of the host, as the kind says. Host memory must be pinned.
struct CopyEnds {
  std::uintptr_t destination = 0;
  std::uintptr_t source = 0;
};

// Enqueues it; never waits. Throws Error.
void enqueue_copy(const cuda::Functions& functions, CopyKind kind, const CopyEnds& ends, const Move& move,
                  cuda::CUstream stream);

}  // namespace ferry
