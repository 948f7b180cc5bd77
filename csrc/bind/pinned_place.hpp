// Whether bytes of host memory are pinned, and by whom.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/tensor_ref.hpp"
#include "pinned/host_pins.hpp"
#include "pinned/pinned_pool.hpp"

namespace ferry::bind {

struct HostBytes {
  std::byte* begin = nullptr;
  std::size_t nbytes = 0;
};
// Those that a tensor reaches.
[[nodiscard]] HostBytes host_bytes(const TensorRef& ref);

// At most one of the three; none for ordinary memory.
struct PinnedPlace {
  std::shared_ptr<PinnedLease> lease;  // of any pool of ours
  std::optional<PinnedRange> range;    // memory of others that we have registered
  bool by_others = false;              // that others have registered as one piece

  explicit operator bool() const noexcept { return lease != nullptr || range || by_others; }
};

// Both without the GIL. Of ours only: initialises nothing.
[[nodiscard]] PinnedPlace own_pinned_place(const HostBytes& bytes);
// Also of others, asked in a context of this device. Throws Error.
[[nodiscard]] PinnedPlace pinned_place(const HostBytes& bytes, int device);

// The process's own registrations of memory of others; in a forked child others than its parent's.
[[nodiscard]] HostPins& host_pins();

}  // namespace ferry::bind
