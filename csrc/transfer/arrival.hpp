// How a tensor on a device comes to lie in host memory: a pure function of its layout.
#pragma once

#include <cstdint>

#include "core/layout.hpp"

namespace ferry {

struct Arrival {
  bool packs = false;     // its producer packs it on the device first; the rest describes what is packed
  bool as_block = false;  // one run of bytes is copied, whatever the axes are
  Layout moved;           // what is copied, from `source_offset` bytes behind the tensor's data pointer
  std::int64_t source_offset = 0;
  Extents landing_strides;       // of `moved` in host memory, bytes
  Extents strides;               // of the whole tensor over that memory; 0 along axes that repeat one element
  std::int64_t data_offset = 0;  // of the tensor's first element in that memory
  std::int64_t nbytes = 0;       // of host memory
};

// Elements that share their bytes are copied once. What fills its bytes is copied as one block and keeps its strides;
// wide equal rows are copied as they are where the host waits anyway. Other layouts are packed by the producer where it
// can (in NumPy's order "K"), else copied row by row, or with the holes between the elements. Throws Error where that
// would take too many copies, or too much memory.
[[nodiscard]] Arrival arrival_of(const Layout& source, bool producer_packs, bool host_waits);

}  // namespace ferry
