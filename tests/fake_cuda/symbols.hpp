// The table behind cuGetProcAddress: which function a name and a version number give.
#pragma once

#include <span>

#include "types.hpp"

namespace fake {

struct Symbol {
  const char* name;
  int version;       ///< the first that has this signature
  void* function;    ///< with NULL as the legacy stream
  void* per_thread;  ///< with NULL as the thread's own stream; null where there is no difference
};

std::span<const Symbol> symbols();

/// What an answer stands for, as cuGetProcAddress says it.
inline constexpr int found_symbol = 0, no_such_symbol = 1, version_too_small = 2;

Result find_symbol(const char* name, int version, u64 flags, void** function, int* status);

}  // namespace fake
