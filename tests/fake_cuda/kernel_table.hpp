// The kernels that the fake device can run, compiled for the host.
#pragma once

#include <cstddef>
#include <span>

namespace fake {

struct KernelCode {
  const char* name;
  std::size_t argument_nbytes;
  bool syncs;  ///< its threads may meet at barriers
  void (*call)(const void* arguments);
};

/// Those of csrc/kernels, then those that tests of the fake itself need, with mistakes in them.
std::span<const KernelCode> kernel_codes();

}  // namespace fake
