// Pinned memory on loan. A block that was handed to others is lent again only when nobody's work on a device can touch
// it any more (an epoch has passed); one that only we used, as soon as it comes back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "pinned/pinned_block.hpp"

namespace ferry {

// What must have passed before an exposed block is lent again.
enum class Fence : std::uint8_t {
  streams,  // work on the legacy stream, on torch's pool streams, on ours, and on those of hold()
  context,  // all work of every active context (cuCtxRecordEvent); streams where the driver has it not
  never,    // exposed blocks are given back to the system instead, once their streams have passed
};

struct PinnedStats {
  std::size_t in_use_nbytes = 0;  // on loan, as capacity
  std::size_t in_use_leases = 0;
  std::size_t idle_nbytes = 0;        // free for the next lease
  std::size_t retired_nbytes = 0;     // back, and waiting for an epoch
  std::size_t limit_nbytes = 0;       // for all of the above together
  std::size_t high_water_nbytes = 0;  // of all of the above together
  std::uint64_t hits = 0;             // leases from idle memory
  std::uint64_t misses = 0;           // leases that locked new pages
  std::uint64_t refusals = 0;         // requests beyond the limit, or that the driver refused
  std::uint64_t trims = 0;            // blocks given back to the system
  std::uint64_t epochs = 0;           // fences that have passed
  std::size_t abandoned_nbytes = 0;   // never to be used again, since a device was lost; beyond the limit
};

class PinnedPool;
struct PinnedSlot;

// Pinned memory, until it dies. From 32 KiB on a block of its own; less is carved from a slab of small equal slots.
class PinnedLease {
 public:
  PinnedLease(const PinnedLease&) = delete;
  PinnedLease& operator=(const PinnedLease&) = delete;
  ~PinnedLease();  // calls no device

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }  // as asked for
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // As PinnedBlock::piece_nbytes.
  [[nodiscard]] std::size_t piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept;
  // As PinnedBlock::device_pointer. Throws Error.
  [[nodiscard]] std::optional<cuda::CUdeviceptr> device_pointer(const std::byte* data) const;

  // From now on others may have been given the memory: its next loan waits for an epoch.
  void expose() noexcept { exposed_.store(true, std::memory_order_relaxed); }
  // The same, and its next loan waits for all work enqueued on `stream` of the scope's context until now, too. Throws
  // Error, also when the stream is capturing.
  void hold(const cuda::ContextScope& scope, cuda::CUstream stream);

 private:
  friend class PinnedPool;
  PinnedLease(std::shared_ptr<PinnedPool> pool, std::size_t nbytes) noexcept;

  std::shared_ptr<PinnedPool> pool_;
  std::unique_ptr<PinnedSlot> slot_;  // null until lent
  std::byte* data_ = nullptr;
  std::size_t nbytes_;
  std::size_t capacity_ = 0;
  std::atomic<bool> exposed_{false};
};

// Any thread.
class PinnedPool : public std::enable_shared_from_this<PinnedPool> {
 public:
  [[nodiscard]] static std::shared_ptr<PinnedPool> make(cuda::Runtime& runtime, std::size_t limit_nbytes,
                                                        Fence fence = Fence::streams);
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;
  // Gives fences a moment to pass; what is retired then stays for good. In a forked child everything does. The
  // process's own instance is never destroyed.
  ~PinnedPool();

  // Uninitialised memory, from the idle when one fits (wasting at most an eighth), else new. Nothing beyond the limit
  // even after trimming, and where no memory can be locked. May record events, never waits for any. Throws Error for
  // failures of the device, and in a forked child.
  [[nodiscard]] std::shared_ptr<PinnedLease> lease(const cuda::ContextScope& scope, std::size_t nbytes);

  // A lease of these very pages (see PinnedBlock::lock), which are the pool's from then on. Null, and the pages stay
  // the caller's, beyond the limit and where they cannot be locked. Throws as lease().
  [[nodiscard]] std::shared_ptr<PinnedLease> adopt(const cuda::ContextScope& scope,
                                                   std::unique_ptr<PinnedMemory>& pages);

  // The lease that holds these bytes, if one of this pool does.
  [[nodiscard]] std::shared_ptr<PinnedLease> find(const void* data, std::size_t nbytes) const;

  // Looks whether fences have passed, and begins one where enough waits for it. Never waits, throws nothing.
  void poll() noexcept;
  // The same, for however little that waits. Never waits, throws nothing.
  void settle() noexcept;
  // Gives idle blocks back to the system, those unused for longest first, until at most `keep_nbytes` are idle; returns
  // how many bytes went back. A slab goes only as a whole.
  std::size_t trim(std::size_t keep_nbytes) noexcept;
  // Returns what held before.
  std::size_t set_limit(std::size_t limit_nbytes) noexcept;
  [[nodiscard]] PinnedStats stats() const noexcept;

  struct State;

 private:
  friend class PinnedLease;
  explicit PinnedPool(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace ferry
