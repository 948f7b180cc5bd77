// Pinning memory that others own, and keeping pinned memory from being used again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bind/pinned_place.hpp"
#include "bind/pinned_pools.hpp"
#include "bind/py_ref.hpp"
#include "bind/source.hpp"

namespace ferry::bind {

// Keeps memory pinned, and its owner alive.
class Pin {
 public:
  Pin(std::optional<PinnedRange> range, PyRef owner) noexcept : range_(std::move(range)), owner_(std::move(owner)) {}
  Pin(Pin&&) noexcept = default;
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  Pin& operator=(Pin&&) = delete;
  ~Pin() { close(); }

  // Does some transfer of ours still need the registrations?
  [[nodiscard]] bool in_use() const noexcept { return range_ && range_->in_use(); }
  // Unregisters, without the GIL, what no transfer and no other pin needs.
  void close() noexcept;

 private:
  std::optional<PinnedRange> range_;
  PyRef owner_;
};

// Pins all of it or throws Error. `owner` keeps the memory mapped, and its size. With the GIL, which is dropped.
[[nodiscard]] Pin pin_memory(const std::vector<const Source*>& sources, PyRef owner, std::optional<int> torch_device);

// The lease of these bytes, of this pool or any, is not lent again before the work that is in `stream` (DLPack's
// number) now; of `device` for the two default streams, else of the current one. False where no pool has lent the
// bytes. Without the GIL. Throws Error.
[[nodiscard]] bool hold(const HostBytes& bytes, PoolHandle* pool, std::int64_t stream, std::optional<int> device);

}  // namespace ferry::bind
