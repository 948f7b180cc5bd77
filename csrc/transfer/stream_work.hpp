// Copies that were enqueued on one producer's stream and are not marked by an event yet, with all that they touch.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuda/runtime.hpp"
#include "kernels/launch.hpp"
#include "pinned/retire_queue.hpp"
#include "transfer/abandoned.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/driver_copy.hpp"
#include "transfer/moves.hpp"

namespace ferry {

// What a copy touches besides the device tensor: the pinned lease, and the owner of memory of others.
struct HostHold {
  std::shared_ptr<void> lease;
  std::shared_ptr<void> owner;
};

// A launch of one of our kernels.
struct KernelWork {
  const cuda::Kernels& kernels;
  const gpu::Launch& launch;
};

// A copy out of a slot of staging; offsets of its moves count from the slot's first byte and from `address`.
struct CopyOut {
  std::uintptr_t address = 0;
  std::vector<Move> moves;
  HostHold host;
};

// Not for two threads at once. What is not finished when it dies is abandoned.
class StreamWork {
 public:
  StreamWork(cuda::Runtime& runtime, RetireQueue& retired, const cuda::ContextScope& scope, cuda::CUstream producer);
  StreamWork(const StreamWork&) = delete;
  StreamWork& operator=(const StreamWork&) = delete;
  ~StreamWork();

  [[nodiscard]] bool is_on(const cuda::ContextScope& scope, cuda::CUstream producer) const noexcept {
    return context_ == scope.context() && producer_ == producer;
  }
  [[nodiscard]] cuda::CUstream stream() const noexcept { return stream_; }
  [[nodiscard]] bool has_staged() const noexcept { return !staged_.empty(); }

  // Copies on the producer's stream. All that is touched is held, also when this throws midway. Throws Error.
  void copy(const cuda::ContextScope& scope, CopyKind kind, const CopyEnds& ends, const std::vector<Move>& moves,
            const std::shared_ptr<void>& tensor, HostHold host);
  // Copies `into` the slot on the producer's stream; the copy `out_of` it to `host_address` follows on a stream of ours
  // when the work is finished. Throws Error.
  void stage(const cuda::ContextScope& scope, std::uintptr_t source, const std::vector<Move>& into,
             const std::shared_ptr<void>& tensor, std::shared_ptr<StagingSlot> slot, std::uintptr_t host_address,
             std::vector<Move> out_of, HostHold host);

  // A kernel in the producer's stream that reads the tensors and stores into host memory. Throws Error.
  void store(const cuda::ContextScope& scope, const KernelWork& kernel, const Holds& tensors, Holds memory);
  // The same into the slot. The copies out of it follow in the same stream, or else on a stream of ours when the work
  // is finished. Throws Error.
  void pack(const cuda::ContextScope& scope, const KernelWork& kernel, const Holds& tensors, Holds memory,
            std::shared_ptr<StagingSlot> slot, std::vector<CopyOut> copies, bool in_stream);

  // The copy follows on a stream of ours when the work is finished, from the tensor itself, which is held until then.
  // Throws Error.
  void follow(const cuda::ContextScope& scope, const CopyEnds& ends, std::vector<Move> moves,
              const std::shared_ptr<void>& tensor, HostHold host);

  // Marks the work so far by one event for each stream, and leaves what it touches to the queue. Adds those events to
  // `events` that the host may wait for. Throws Error; even then everything is retired, or abandoned.
  void finish(std::vector<std::shared_ptr<const cuda::Event>>& events);

 private:
  // A copy that comes after the snapshots: from a slot, or from a tensor that is one.
  struct Staged {
    std::shared_ptr<StagingSlot> slot;
    std::shared_ptr<void> tensor;
    CopyEnds ends;
    std::vector<Move> out_of;
    HostHold host;
  };

  void prepare(const cuda::ContextScope& scope, cuda::EventUse use);
  void prepare_to_copy_out(const cuda::ContextScope& scope);
  void hold(const std::shared_ptr<void>& tensor);
  void copy_out(std::vector<Staged> staged);

  cuda::Runtime& runtime_;
  RetireQueue& retired_;
  const int device_;
  const cuda::ContextIdentity context_;
  const cuda::CUstream producer_;
  cuda::CUstream stream_;
  std::shared_ptr<const cuda::Event> event_;  // taken before anything is enqueued
  bool event_can_wait_ = false;
  Holds tensors_;
  Holds memory_;
  std::vector<std::shared_ptr<StagingSlot>> slots_;  // which this stream itself copies out of
  std::vector<std::shared_ptr<StagingSlot>> touched_slots_;
  cuda::CUstream copy_stream_ = nullptr;
  std::shared_ptr<const cuda::Event> copied_;  // the same
  std::vector<Staged> staged_;
};

}  // namespace ferry
