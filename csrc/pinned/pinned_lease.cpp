#include <exception>
#include <utility>

#include "core/mutation.hpp"
#include "cuda/capture.hpp"
#include "pinned/pinned_pool.hpp"
#include "pinned/pool_state.hpp"

namespace ferry {

PinnedLease::PinnedLease(std::shared_ptr<PinnedPool> pool, std::size_t nbytes) noexcept
    : pool_(std::move(pool)), nbytes_(nbytes) {}

PinnedLease::~PinnedLease() {
  if (slot_ == nullptr) return;
  PinnedPool::State& state = *pool_->state_;
  if (state.is_in_child()) {
    static_cast<void>(slot_.release());
    return;
  }
  const std::lock_guard lock(state.mutex);
  state.loans.erase(data_);
  --state.stats.in_use_leases;
  state.stats.in_use_nbytes -= capacity_;
  if (exposed_.load(std::memory_order_relaxed) && !mutated(Mutation::reuse_exposed_block)) {
    state.stats.retired_nbytes += capacity_;
    state.open_nbytes += capacity_;
    state.last_return = state.runtime.foreign().tick();
    append(state.open, std::move(slot_));
  } else {
    slot_->holds.clear();
    state.shelve(std::move(slot_));
  }
}

std::size_t PinnedLease::piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept {
  const PinnedBlock& block = slot_->slab == nullptr ? *slot_->block : slot_->slab->block();
  return block.piece_nbytes(data, nbytes);
}

std::optional<cuda::CUdeviceptr> PinnedLease::device_pointer(const std::byte* data) const {
  const PinnedBlock& block = slot_->slab == nullptr ? *slot_->block : slot_->slab->block();
  return block.device_pointer(data);
}

void PinnedLease::hold(const cuda::ContextScope& scope, cuda::CUstream stream) {
  expose();
  if (mutated(Mutation::ignore_hold)) return;
  PinnedPool::State& state = *pool_->state_;
  if (cuda::capture_state(scope.driver().functions(), stream) != cuda::CaptureState::none) {
    throw Error(ErrorKind::device, "hold(stream)", "the stream is capturing, and work in a graph has no end yet",
                "keep the array for as long as the graph may be replayed");
  }
  cuda::Event event = state.runtime.events().take(scope, cuda::EventUse::ordering);
  event.record(stream);
  const std::lock_guard lock(state.mutex);
  slot_->holds.push_back(std::move(event));
}

}  // namespace ferry
