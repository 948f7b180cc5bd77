// Pages of ours that the driver knows: devices copy from and to them directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/registration.hpp"
#include "cuda/runtime.hpp"
#include "pinned/pinned_memory.hpp"

namespace ferry {

// What a pinned block for `nbytes` costs: whole pages, from 64 MiB on whole huge pages. Throws std::bad_alloc for what
// no address space holds.
[[nodiscard]] std::size_t pinned_block_nbytes(std::size_t nbytes);

// Registered in one piece where the driver takes it, else in halves of halves, else memory of the driver's own. Must
// not die while a device may touch it: unregistering waits for nothing. In a forked child it stays as it is, for good.
class PinnedBlock {
 public:
  // Uninitialised, its pages in place (touched by several threads when there are many), on the NUMA node of the scope's
  // device where that is known. Nothing where the pages cannot be locked; the caller then has another way. Blocks while
  // pages are taken. Throws Error for failures of the device, std::bad_alloc when there is no memory.
  [[nodiscard]] static std::optional<PinnedBlock> make(const cuda::ContextScope& scope, std::size_t nbytes);

  // The same for pages that are in place already, as mapped_pages() makes them and of pinned_block_nbytes(): what they
  // hold stays. Where they cannot be locked they stay the caller's. Throws Error; they may be gone then for good.
  [[nodiscard]] static std::optional<PinnedBlock> lock(const cuda::ContextScope& scope,
                                                       std::unique_ptr<PinnedMemory>& pages);

  PinnedBlock(PinnedBlock&& other) noexcept = default;
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  PinnedBlock& operator=(PinnedBlock&&) = delete;
  // Unregisters, then unmaps; memory that the driver does not let go stays for good.
  ~PinnedBlock();

  [[nodiscard]] std::byte* data() const noexcept { return memory_.front()->data(); }
  [[nodiscard]] std::size_t nbytes() const noexcept { return memory_.front()->nbytes(); }

  // How many bytes from `data` on, up to `nbytes`, lie inside one registration: what one copy may cover.
  [[nodiscard]] std::size_t piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept;

  // Where the scope's device finds that byte: kernels may store from there on, as far as piece_nbytes() tells. Nothing
  // outside of the block. Throws Error.
  [[nodiscard]] std::optional<cuda::CUdeviceptr> device_pointer(const std::byte* data) const;

  // False once the context that registered it was reset: then it is ordinary memory.
  [[nodiscard]] bool is_registered() const noexcept;

 private:
  using Memory = std::list<std::unique_ptr<PinnedMemory>>;  // of one, as keep_for_good wants it
  PinnedBlock(const cuda::ContextScope& scope, Memory memory) noexcept;
  bool register_pages(const cuda::ContextScope& scope);
  void unregister() noexcept;

  const cuda::Driver& driver_;
  cuda::ContextIdentity context_;
  std::uint32_t generation_;
  Memory memory_;                                  // empty once moved from
  std::vector<cuda::Registration> registrations_;  // adjacent, in order; none where the memory is the driver's
  bool may_unmap_ = true;
};

}  // namespace ferry
