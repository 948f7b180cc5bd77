// One copy in a stream, between places that were found and judged.
#pragma once

#include <string>

#include "device_memory.hpp"

namespace fake {

struct Rows {
  std::size_t width, height, from_pitch, to_pitch;

  std::size_t span(std::size_t pitch) const { return pitch * (height - 1) + width; }
};

inline Rows one_row(std::size_t nbytes) { return {nbytes, 1, nbytes, nbytes}; }

/// What moves the bytes. With `read_now` the source is read before this returns.
Operation copy_operation(std::string name, const Place& to, const Place& from, Rows rows, bool read_now);

/// Put a copy into a stream. Pageable sources are read at once, pageable targets are waited for.
Result copy(World& w, const std::string& name, Stream handle, const Place& to, const Place& from, Rows rows,
            Lock& lock);

/// Device memory or host memory, whichever the address is.
Result find_anywhere(World& w, const char* who, Pointer pointer, std::size_t nbytes, bool writes, Place& place);

}  // namespace fake
