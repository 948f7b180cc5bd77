// Arrays' memory that was asked for as pinned: pinned, or ordinary for now, or ordinary for good.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "bind/pinned_place.hpp"
#include "bind/pinned_pools.hpp"
#include "bind/py_ref.hpp"

namespace ferry::bind {

// New memory, of at least a byte.
struct NewMemory {
  std::byte* data;
  PyRef owner;
  bool is_zero;  // surely
};

// From the pool where there is a context to pin in; else pages that are pinned at their first use with a device, if
// such a use can come; else ordinary memory. With the GIL, which is dropped meanwhile.
[[nodiscard]] NewMemory memory_to_pin(const std::shared_ptr<PoolHandle>& pool, std::size_t nbytes,
                                      std::optional<int> torch_device);

// What is known about memory of that kind that is not pinned.
struct Unpinned {
  bool may_be_pinned;    // at its first use with a device
  std::string obstacle;  // else why not
};

// All of these with the GIL. Nothing for other memory, and for what is pinned.
[[nodiscard]] std::optional<Unpinned> unpinned(const HostBytes& bytes);
// The pool that would pin these bytes at their first use with a device, and what that would take; null where nothing
// waits for that.
struct Waiting {
  std::shared_ptr<PoolHandle> pool;
  std::size_t nbytes = 0;
};
[[nodiscard]] Waiting waiting_to_be_pinned(const HostBytes& bytes);
// Pins memory that waits for its first use with a device, in a context of this one; what is refused stays ordinary.
// With `again`, also what was refused before. Does nothing for other memory. Drops the GIL meanwhile.
void pin_waiting(const HostBytes& bytes, int device, bool again = false);
// Was this memory asked for through ours, pinned or not?
[[nodiscard]] bool is_pinnable(const HostBytes& bytes);

}  // namespace ferry::bind
