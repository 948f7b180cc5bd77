// How a tensor on a device comes to lie in host memory: a pure function of its layout.
#pragma once

#include <cstdint>
#include <optional>

#include "core/dtype.hpp"
#include "core/layout.hpp"

namespace ferry {

struct Arrival {
  bool packs = false;         // its producer packs it on the device first; the rest describes what is packed
  bool by_kernel = false;     // a kernel of ours does, and casts where the dtypes differ
  DType from = DType::uint8;  // of what is moved, as kernels read and write it
  DType to = DType::uint8;
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

// What is wanted of values that a kernel may pack and cast.
struct KernelWish {
  DType from = DType::uint8;
  DType to = DType::uint8;  // the same: bits are moved
  Order order = Order::keep;
  bool host_waits = true;
  std::int64_t rows_from = 4096;  // wider rows need no kernel where the host waits
};

// The same where our kernels are there. Nothing where none is needed, or none takes it: then it is as above.
[[nodiscard]] std::optional<Arrival> arrival_by_kernel(const Layout& source, const KernelWish& wish);

}  // namespace ferry
