#include "transfer/pack_ring.hpp"

#include <exception>
#include <utility>

#include "core/mutation.hpp"
#include "transfer/driver_copy.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/refusals.hpp"

namespace ferry {

PackRing::PackRing(cuda::Runtime& runtime, RetireQueue& retired, const cuda::ContextScope& scope,
                   const cuda::Kernels& kernels, const DeviceTensor& tensor,
                   std::vector<std::shared_ptr<StagingSlot>> slots)
    : runtime_(runtime),
      retired_(retired),
      scope_(scope),
      kernels_(kernels),
      tensor_(tensor),
      copy_stream_(runtime.copy_stream(scope, cuda::Direction::to_host, tensor.stream)) {
  for (std::shared_ptr<StagingSlot>& slot : slots) slots_.push_back({std::move(slot), nullptr});
}

PackRing::~PackRing() {
  Holds memory;
  try {
    for (const Slot& slot : slots_) memory.push_back(slot.place);
    if (packing_) {
      abandon({tensor_.owner});
    } else if (packed_) {
      retired_.add({packed_, {tensor_.owner}, memory, nullptr});
    }
    memory.insert(memory.end(), host_.begin(), host_.end());
    if (packing_ || copying_) {
      for (const Slot& slot : slots_) slot.place->lose();
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

void PackRing::hold(std::shared_ptr<void> memory) {
  if (memory) host_.push_back(std::move(memory));
}

std::shared_ptr<const cuda::Event> PackRing::enqueue(const PackChunk& chunk, DType dtype, std::uintptr_t host,
                                                     const std::vector<Move>& moves) {
  Slot& slot = slots_[next_++ % slots_.size()];
  auto copied = std::make_shared<const cuda::Event>(runtime_.events().take(scope_, cuda::EventUse::waiting));
  const cuda::Functions& functions = runtime_.functions();
  if (slot.copied && !mutated(Mutation::reuse_pack_slot_early)) {
    cuda::order_after(functions, tensor_.stream, slot.copied->handle());
  }
  pack(chunk, dtype, slot);
  if (!mutated(Mutation::copy_before_pack)) cuda::order_after(functions, copy_stream_, packed_->handle());
  std::exception_ptr failure;
  copying_ = true;
  try {
    const CopyEnds ends{host, static_cast<std::uintptr_t>(slot.place->address())};
    for (const Move& move : moves) enqueue_copy(functions, CopyKind::to_host, ends, move, copy_stream_);
  } catch (...) {
    failure = std::current_exception();  // what was enqueued before is marked all the same
  }
  copied->record(copy_stream_);
  copying_ = false;
  slot.copied = copied_ = copied;
  slot.place->used_until(copied);
  if (failure) std::rethrow_exception(failure);
  return copied;
}

void PackRing::pack(const PackChunk& chunk, DType dtype, Slot& slot) {
  const KernelEnd to{slot.place->address(), chunk.packed, dtype};
  const KernelEnd from{device_address(tensor_.ref.data + chunk.device_offset), chunk.device, tensor_.ref.dtype};
  const auto launch =
      gpu::launch_for(kernel_copy(to, from), gpu::memory_bound(static_cast<std::uint32_t>(kernels_.multiprocessors())));
  if (!launch) throw no_kernel_for(tensor_.ref);
  auto packed = std::make_shared<const cuda::Event>(runtime_.events().take(scope_, cuda::EventUse::ordering));
  std::exception_ptr failure;
  packing_ = true;
  try {
    kernels_.launch(scope_, *launch, tensor_.stream);
  } catch (...) {
    failure = std::current_exception();
  }
  packed->record(tensor_.stream);
  packing_ = false;
  packed_ = std::move(packed);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ferry
