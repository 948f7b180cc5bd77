#include "transfer/unpack_ring.hpp"

#include <exception>
#include <utility>

#include "core/mutation.hpp"
#include "transfer/driver_copy.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/refusals.hpp"

namespace ferry {

UnpackRing::UnpackRing(cuda::Runtime& runtime, RetireQueue& retired, const cuda::ContextScope& scope,
                       const cuda::Kernels& kernels, const DeviceTensor& tensor,
                       std::vector<std::shared_ptr<StagingSlot>> slots, cuda::CUstream copy_stream)
    : runtime_(runtime),
      retired_(retired),
      scope_(scope),
      kernels_(kernels),
      tensor_(tensor),
      copy_stream_(copy_stream) {
  for (std::shared_ptr<StagingSlot>& slot : slots) slots_.push_back({std::move(slot), nullptr});
}

// A slot is free when both streams are done with it: the last copy may have no kernel behind it.
UnpackRing::~UnpackRing() {
  Holds places;
  try {
    for (const Slot& slot : slots_) places.push_back(slot.place);
    if (copying_ || unpacking_) {
      for (const Slot& slot : slots_) slot.place->lose();
      abandon(places);
    }
    if (unpacking_) {
      abandon({tensor_.owner});
    } else if (unpacked_) {
      retired_.add({unpacked_, {tensor_.owner}, places, nullptr});
    }
    Holds memory = host_;
    memory.insert(memory.end(), places.begin(), places.end());
    if (copying_) {
      abandon(std::move(memory));
    } else if (copied_) {
      retired_.add({copied_, {}, std::move(memory), nullptr});
    }
  } catch (...) {
    abandon(std::move(host_));
    for (Slot& slot : slots_) {
      slot.place->lose();
      abandon({std::move(slot.place)});
    }
  }
}

void UnpackRing::hold(std::shared_ptr<void> memory) {
  if (memory) host_.push_back(std::move(memory));
}

void UnpackRing::enqueue(const UnpackChunk& chunk, DType dtype, std::uintptr_t host, const std::vector<Move>& moves) {
  Slot& slot = slots_[next_++ % slots_.size()];
  const cuda::Functions& functions = runtime_.functions();
  if (slot.unpacked && !mutated(Mutation::reuse_unpack_slot_early)) {
    cuda::order_after(functions, copy_stream_, slot.unpacked->handle());
  }
  copy(slot, host, moves);
  if (!mutated(Mutation::unpack_before_copy)) cuda::order_after(functions, tensor_.stream, copied_->handle());
  unpack(chunk, dtype, slot);
}

void UnpackRing::copy(const Slot& slot, std::uintptr_t host, const std::vector<Move>& moves) {
  const auto copied = new_event();
  std::exception_ptr failure;
  copying_ = true;
  try {
    const CopyEnds ends{static_cast<std::uintptr_t>(slot.place->address()), host};
    for (const Move& move : moves) {
      enqueue_copy(runtime_.functions(), CopyKind::to_device, ends, move, copy_stream_);
    }
  } catch (...) {
    failure = std::current_exception();  // what was enqueued before is marked all the same
  }
  copied->record(copy_stream_);
  copying_ = false;
  copied_ = copied;
  if (failure) std::rethrow_exception(failure);
}

void UnpackRing::unpack(const UnpackChunk& chunk, DType dtype, Slot& slot) {
  const KernelEnd to{device_address(tensor_.ref.data + chunk.device_offset), chunk.device, tensor_.ref.dtype};
  const auto launch = gpu::launch_for(kernel_copy(to, {slot.place->address(), chunk.landing, dtype}),
                                      gpu::memory_bound(static_cast<std::uint32_t>(kernels_.multiprocessors())));
  if (!launch) throw no_kernel_for(tensor_.ref);
  const auto unpacked = new_event();
  std::exception_ptr failure;
  unpacking_ = true;
  try {
    kernels_.launch(scope_, *launch, tensor_.stream);
  } catch (...) {
    failure = std::current_exception();
  }
  unpacked->record(tensor_.stream);
  unpacking_ = false;
  slot.unpacked = unpacked_ = unpacked;
  slot.place->used_until(unpacked);
  if (failure) std::rethrow_exception(failure);
}

std::shared_ptr<const cuda::Event> UnpackRing::new_event() {
  return std::make_shared<const cuda::Event>(runtime_.events().take(scope_, cuda::EventUse::waiting));
}

}  // namespace ferry
