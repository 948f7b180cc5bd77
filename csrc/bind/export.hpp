// DLPack capsules made by us.
#pragma once

#include <cstdint>

#include "bind/source.hpp"

namespace ferry::bind {

// A new capsule over the source, which owns the source's owner. `flags` as in the DLPack header.
PyRef export_capsule(const Source& source, std::uint64_t flags, bool versioned);

}  // namespace ferry::bind
