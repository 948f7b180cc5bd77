// What the driver's functions and the tests' controls share about memory.
#pragma once

#include <string>

#include "world.hpp"

namespace fake {

/// Free at once; pending work that touches it is a violation.
Result free_device(World& w, Pointer pointer, Lock& lock);

/// Free when the stream gets there.
void free_later(World& w, const Allocation& allocation, Stream stream, Lock& lock);

/// One end of a copy, found and judged.
struct Place {
  std::uintptr_t address = 0;
  Access access;
  bool pageable = false;
};

/// Device memory, or registered host memory by its device pointer.
Result find_device(World& w, const char* who, Pointer pointer, std::size_t nbytes, bool writes, Place& place);
/// Host memory: wholly inside one registration, or wholly outside all.
Result find_host(World& w, const char* who, const void* pointer, std::size_t nbytes, bool writes, Place& place);

/// The device's address of registered host memory, and back; 0 for what is no such address.
Pointer device_pointer_of(World& w, std::uintptr_t host);
std::uintptr_t host_address_of(const World& w, Pointer pointer);

}  // namespace fake
