// The parts of one tensor on their way out of a device: kernels pack them in the producer's stream, and a stream of
// ours copies them to the host. Few slots of staging serve in turn, so that memory is bounded and both go on at once.
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
class PackRing {
 public:
  PackRing(cuda::Runtime& runtime, RetireQueue& retired, const cuda::ContextScope& scope, const cuda::Kernels& kernels,
           const DeviceTensor& tensor, std::vector<std::shared_ptr<StagingSlot>> slots);
  PackRing(const PackRing&) = delete;
  PackRing& operator=(const PackRing&) = delete;
  ~PackRing();

  // Keeps host memory until the last copy is done.
  void hold(std::shared_ptr<void> memory);

  // Packs the part, cast to `dtype`, then copies it by `moves` from its packed bytes to `host`. Returns the event
  // behind the copy, which the host may wait for. Throws Error; copies that may be running then are behind
  // `last_copied`, unless is_lost().
  std::shared_ptr<const cuda::Event> enqueue(const PackChunk& chunk, DType dtype, std::uintptr_t host,
                                             const std::vector<Move>& moves);

  [[nodiscard]] const std::shared_ptr<const cuda::Event>& last_copied() const noexcept { return copied_; }
  [[nodiscard]] bool is_lost() const noexcept { return copying_; }

 private:
  struct Slot {
    std::shared_ptr<StagingSlot> place;
    std::shared_ptr<const cuda::Event> copied;
  };

  void pack(const PackChunk& chunk, DType dtype, Slot& slot);

  cuda::Runtime& runtime_;
  RetireQueue& retired_;
  const cuda::ContextScope& scope_;
  const cuda::Kernels& kernels_;
  const DeviceTensor& tensor_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  const cuda::CUstream copy_stream_;
  Holds host_;
  std::shared_ptr<const cuda::Event> packed_;
  std::shared_ptr<const cuda::Event> copied_;
  bool packing_ = false;  // work is enqueued that no event marks yet
  bool copying_ = false;
};

}  // namespace ferry
