#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

/// An access of the running kernel that is about to happen.
void touch(std::uintptr_t address, std::size_t nbytes, bool writes, bool aligned);

}  // namespace fake
