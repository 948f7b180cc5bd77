// The parts of one tensor on their way into a device: a stream of ours copies them to staging, and kernels unpack them
// in the destination's stream. Few slots of staging serve in turn, so that memory is bounded and both go on at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/runtime.hpp"
#include "pinned/retire_queue.hpp"
#include "transfer/abandoned.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/device_tensor.hpp"
#include "transfer/moves.hpp"
#include "transfer/pack_chunks.hpp"

namespace ferry {

// Not for two threads at once. What it touched is left to the queue when it dies.
class UnpackRing {
 public:
  // `copy_stream` is ours, and ordered after whatever was pending on the slots' memory.
  UnpackRing(cuda::Runtime& runtime, RetireQueue& retired, const cuda::ContextScope& scope,
             const cuda::Kernels& kernels, const DeviceTensor& tensor, std::vector<std::shared_ptr<StagingSlot>> slots,
             cuda::CUstream copy_stream);
  UnpackRing(const UnpackRing&) = delete;
  UnpackRing& operator=(const UnpackRing&) = delete;
  ~UnpackRing();

  // Keeps host memory until the last copy is done.
  void hold(std::shared_ptr<void> memory);

  // Copies the part's packed bytes, which are of `dtype`, by `moves` from `host`, then unpacks them. The event behind
  // the copy is `last_copied` then. Throws Error; copies that may be running then are behind `last_copied`, unless
  // is_lost().
  void enqueue(const UnpackChunk& chunk, DType dtype, std::uintptr_t host, const std::vector<Move>& moves);

  [[nodiscard]] const std::shared_ptr<const cuda::Event>& last_copied() const noexcept { return copied_; }
  // Everything so far is in its place when this one is done.
  [[nodiscard]] const std::shared_ptr<const cuda::Event>& last_unpacked() const noexcept { return unpacked_; }
  [[nodiscard]] bool is_lost() const noexcept { return copying_; }

 private:
  struct Slot {
    std::shared_ptr<StagingSlot> place;
    std::shared_ptr<const cuda::Event> unpacked;
  };

  void copy(const Slot& slot, std::uintptr_t host, const std::vector<Move>& moves);
  void unpack(const UnpackChunk& chunk, DType dtype, Slot& slot);
  [[nodiscard]] std::shared_ptr<const cuda::Event> new_event();

  cuda::Runtime& runtime_;
  RetireQueue& retired_;
  const cuda::ContextScope& scope_;
  const cuda::Kernels& kernels_;
  const DeviceTensor& tensor_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  const cuda::CUstream copy_stream_;
  Holds host_;
  std::shared_ptr<const cuda::Event> copied_;
  std::shared_ptr<const cuda::Event> unpacked_;
  bool copying_ = false;  // work is enqueued that no event marks yet
  bool unpacking_ = false;
};

}  // namespace ferry
