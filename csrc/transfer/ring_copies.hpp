// The parts of one tensor on their way between a device and the ring.
#pragma once

#include <memory>

#include "cuda/runtime.hpp"
#include "transfer/device_tensor.hpp"
#include "transfer/host_ring.hpp"
#include "transfer/kept_tensor.hpp"
#include "transfer/ring_chunks.hpp"

namespace ferry {

class RingCopies {
 public:
  RingCopies(cuda::Runtime& runtime, const cuda::ContextScope& scope, RetireQueue& retired, const DeviceTensor& tensor,
             RingWay way)
      : runtime_(runtime), scope_(scope), tensor_(tensor), way_(way), kept_(retired, tensor.owner) {}

  // Enqueues the part's copies and an event behind them, which is returned. The piece is the caller's to mark; where
  // this throws it is marked, or given up. Throws Error.
  [[nodiscard]] std::shared_ptr<const cuda::Event> enqueue(const RingChunk& chunk, RingPiece& piece);

  // The host has seen that everything is done.
  void seen_done() noexcept { kept_.seen_done(); }

 private:
  cuda::Runtime& runtime_;
  const cuda::ContextScope& scope_;
  const DeviceTensor& tensor_;
  const RingWay way_;
  KeptTensor kept_;
};

}  // namespace ferry
