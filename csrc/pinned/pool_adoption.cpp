// Memory that was ordinary at first, and what has come back.
#include <exception>
#include <new>
#include <utility>

#include "pinned/pool_state.hpp"

namespace ferry {

std::shared_ptr<PinnedLease> PinnedPool::adopt(const cuda::ContextScope& scope, std::unique_ptr<PinnedMemory>& pages) {
  State& state = *state_;
  static_cast<void>(state.runtime.functions());  // throws in a forked child
  const std::size_t nbytes = pages->nbytes();
  // All that may fail for lack of memory comes before the pages are taken.
  std::shared_ptr<PinnedLease> lease(new PinnedLease(shared_from_this(), nbytes));
  State::Loans loans;
  loans.try_emplace(nullptr, State::Loan{lease, nbytes});
  State::Loans::node_type loan = loans.extract(loans.begin());
  auto slot = std::make_unique<PinnedSlot>();
  state.know_context(scope.context());
  {
    const std::lock_guard lock(state.mutex);
    state.blocks.expect(nbytes);
  }

  bool reserved = state.reserve(nbytes);
  if (!reserved) {
    state.poll_epochs();
    state.close_epoch();
    reserved = state.reserve(nbytes);
  }
  std::exception_ptr failed;
  if (reserved) {
    try {
      if (auto block = PinnedBlock::lock(scope, pages)) slot->block.emplace(std::move(*block));
    } catch (...) {
      failed = std::current_exception();
    }
  }
  const std::lock_guard lock(state.mutex);
  if (reserved) state.moving_nbytes -= nbytes;
  if (!slot->block) {
    state.blocks.forget(nbytes);
    ++state.stats.refusals;
    if (failed) std::rethrow_exception(failed);
    return nullptr;
  }
  slot->data = slot->block->data();
  slot->capacity = nbytes;
  ++state.stats.misses;
  ++state.stats.in_use_leases;
  state.stats.in_use_nbytes += nbytes;
  state.note_high_water();
  slot->loan = ++state.loans_made;
  lease->data_ = slot->data;
  lease->capacity_ = nbytes;
  loan.key() = slot->data;
  state.loans.insert(std::move(loan));
  lease->slot_ = std::move(slot);
  return lease;
}

void PinnedPool::settle() noexcept {
  if (state_->is_in_child()) return;
  state_->close_epoch();
  state_->poll_epochs();
  state_->bury();
}

}  // namespace ferry
