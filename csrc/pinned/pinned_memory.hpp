// The memory behind a pinned block.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda/context.hpp"

namespace ferry {

// Whole pages, freed with the object.
class PinnedMemory {
 public:
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  virtual ~PinnedMemory() = default;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

 protected:
  PinnedMemory(std::byte* data, std::size_t nbytes) noexcept : data_(data), nbytes_(nbytes) {}

 private:
  std::byte* data_;
  std::size_t nbytes_;
};

// Ordinary pages, a multiple of the page size; from huge_pages_from_nbytes on aligned to huge pages. Throws
// std::bad_alloc.
[[nodiscard]] std::unique_ptr<PinnedMemory> mapped_pages(std::size_t nbytes);

// The driver's own, locked and mapped for all contexts. Null where the driver has none to give. A forked child may find
// nothing there. Throws Error.
[[nodiscard]] std::unique_ptr<PinnedMemory> driver_pages(const cuda::ContextScope& scope, std::size_t nbytes);

}  // namespace ferry
