// What the driver knows about memory that somebody else allocated.
#pragma once

#include <cstddef>

#include "cuda/context.hpp"

namespace ferry::cuda {

enum class HostRange : unsigned char {
  pageable,         // unknown to the driver at both ends
  pinned,           // wholly inside one registration or allocation: a driver copy may use it as it is
  pinned_in_parts,  // known at both ends, but not as one: no single copy may cover it
  mixed,            // known at one end only
  managed,          // unified memory, which moves
  device,           // no host memory
};

// Asks about the first and the last byte; what lies between is the owner's word. Throws Error.
[[nodiscard]] HostRange classify_host_range(const ContextScope& scope, const void* data, std::size_t nbytes);

// The ordinal of the device that owns this memory. Throws Error for memory that no device owns.
[[nodiscard]] int device_of(const Functions& functions, CUdeviceptr address);

}  // namespace ferry::cuda
