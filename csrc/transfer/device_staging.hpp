// One block of device memory, taken once for each context, in which snapshots wait for their way to the host.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/runtime.hpp"
#include "transfer/device_memory.hpp"

namespace ferry {

class DeviceStaging;

// A place in the block, until it dies: hold it until no work can touch it any more.
class StagingSlot {
 public:
  StagingSlot(std::shared_ptr<DeviceStaging> staging, std::uint64_t ticket, cuda::CUdeviceptr address) noexcept
      : staging_(std::move(staging)), ticket_(ticket), address_(address) {}
  StagingSlot(const StagingSlot&) = delete;
  StagingSlot& operator=(const StagingSlot&) = delete;
  ~StagingSlot();

  [[nodiscard]] cuda::CUdeviceptr address() const noexcept { return address_; }
  // The last work that touches it is done when this event is.
  void used_until(std::shared_ptr<const cuda::Event> done) noexcept;
  // Nobody can tell when the device is done with the place. Whoever says so abandons the slot.
  void lose() noexcept;

 private:
  std::shared_ptr<DeviceStaging> staging_;
  std::uint64_t ticket_;
  cuda::CUdeviceptr address_;
};

// Any thread.
// Invariant: the places that are taken do not overlap, and are in the order of their offsets.
class DeviceStaging : public std::enable_shared_from_this<DeviceStaging> {
 public:
  // What is still pending on the memory is pending in `memory.stream`. Throws Error.
  DeviceStaging(cuda::Runtime& runtime, const cuda::ContextScope& scope, DeviceMemory memory, std::size_t nbytes);
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;
  ~DeviceStaging();  // gives the memory back; abandons it where its context was reset

  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }

  // The first place that is large enough, for a copy on `stream`. Nothing where there is none, and where `most` places
  // are in use for copies on that stream. Never waits.
  [[nodiscard]] std::shared_ptr<StagingSlot> take(std::size_t nbytes, cuda::CUstream stream, std::size_t most);

  // Up to `count` such places for work that takes turns in them; none where there is not even one. Never waits.
  [[nodiscard]] std::vector<std::shared_ptr<StagingSlot>> take_some(std::size_t nbytes, std::size_t count,
                                                                    cuda::CUstream stream, std::size_t most);

  // Orders `stream` after what was pending on the memory when it was taken. Throws Error.
  void order_after_memory(cuda::CUstream stream);

  // When the place that was taken first, of those whose end is known, may be free. Null where none is known.
  [[nodiscard]] std::shared_ptr<const cuda::Event> oldest() const;

  // Places are lost, and will never be free.
  [[nodiscard]] bool has_losses() const noexcept { return has_losses_.load(std::memory_order_relaxed); }

 private:
  friend class StagingSlot;
  struct Place {
    std::size_t offset;
    std::size_t nbytes;
    cuda::CUstream stream;
    std::uint64_t ticket;
    std::shared_ptr<const cuda::Event> done;
  };

  void give_back(std::uint64_t ticket) noexcept;
  void used_until(std::uint64_t ticket, std::shared_ptr<const cuda::Event> done) noexcept;

  cuda::Runtime& runtime_;
  const cuda::ContextIdentity context_;
  DeviceMemory memory_;
  const std::size_t nbytes_;
  mutable std::mutex mutex_;
  std::shared_ptr<const cuda::Event> ready_;  // null once it is known to be done
  std::vector<Place> places_;
  std::uint64_t last_ticket_ = 0;
  std::atomic<bool> has_losses_{false};
};

// Memory of the driver's stream-ordered allocator, given back to it in order. Nothing where the driver has no such
// allocator, and where it has no memory. Throws Error for failures of the device.
[[nodiscard]] std::optional<DeviceMemory> staging_from_driver(const cuda::ContextScope& scope, std::size_t nbytes);

}  // namespace ferry
