#include "pinned/pinned_pool.hpp"

#include <chrono>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>

#include "pinned/kept_for_good.hpp"
#include "pinned/pool_state.hpp"

namespace ferry {
namespace {

constexpr int most_last_polls = 50;
constexpr std::chrono::milliseconds between_last_polls{1};

}  // namespace

std::shared_ptr<PinnedPool> PinnedPool::make(cuda::Runtime& runtime, std::size_t limit_nbytes, Fence fence) {
  return std::shared_ptr<PinnedPool>(new PinnedPool(std::make_unique<State>(runtime, fence, limit_nbytes)));
}

PinnedPool::PinnedPool(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}

PinnedPool::~PinnedPool() {
  if (state_->is_in_child()) {
    static_cast<void>(state_.release());
    return;
  }
  State& state = *state_;
  for (int polls = 0; state.stats.retired_nbytes > 0 && polls < most_last_polls; ++polls) {
    if (polls > 4) std::this_thread::sleep_for(between_last_polls);
    state.close_epoch();
    state.poll_epochs();
  }
  for (Epoch& epoch : state.closed) keep_for_good(epoch.slots);
  keep_for_good(state.open);
  // A slab is freed as a whole or not at all.
  SlabList kept;
  SlabList slabs = state.slabs.all();
  for (auto at = slabs.begin(); at != slabs.end();) {
    const auto here = at++;
    if (!here->is_whole()) kept.splice(kept.end(), slabs, here);
  }
  keep_for_good(kept);
}

std::shared_ptr<PinnedLease> PinnedPool::lease(const cuda::ContextScope& scope, std::size_t nbytes) {
  State& state = *state_;
  static_cast<void>(state.runtime.functions());  // throws in a forked child
  // All that may fail for lack of memory comes before memory is taken from the pool.
  std::shared_ptr<PinnedLease> lease(new PinnedLease(shared_from_this(), nbytes));
  State::Loans loans;
  loans.try_emplace(nullptr, State::Loan{lease, 0});
  State::Loans::node_type loan = loans.extract(loans.begin());
  state.know_context(scope.context());

  constexpr std::size_t largest_nbytes = std::numeric_limits<std::size_t>::max() / 4;
  std::unique_ptr<PinnedSlot> slot;
  bool hit = true;
  if (nbytes <= largest_nbytes) {
    const bool small = nbytes < slots_below_nbytes && state.fence != Fence::never;
    const Wanted wanted{small ? Slabs::slot_nbytes_for(nbytes) : pinned_block_nbytes(nbytes), small};
    slot = state.take_idle(wanted);
    if (slot == nullptr) {
      state.poll_epochs();
      slot = state.take_idle(wanted);
    }
    hit = slot != nullptr;
    if (!hit || state.wants_epoch()) state.close_epoch();
    if (!hit) slot = state.grown(scope, wanted);
  }
  const std::lock_guard lock(state.mutex);
  if (slot == nullptr) {
    ++state.stats.refusals;
    return nullptr;
  }
  ++(hit ? state.stats.hits : state.stats.misses);
  ++state.stats.in_use_leases;
  state.stats.in_use_nbytes += slot->capacity;
  state.moving_nbytes -= slot->capacity;
  slot->loan = ++state.loans_made;
  lease->data_ = slot->data;
  lease->capacity_ = slot->capacity;
  loan.key() = slot->data;
  loan.mapped().nbytes = slot->capacity;
  state.loans.insert(std::move(loan));
  lease->slot_ = std::move(slot);
  return lease;
}

std::shared_ptr<PinnedLease> PinnedPool::find(const void* data, std::size_t nbytes) const {
  const State& state = *state_;
  if (state.is_in_child()) return nullptr;
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(state.mutex);
  const auto behind = state.loans.upper_bound(begin);
  if (behind == state.loans.begin()) return nullptr;
  const auto& [start, loan] = *std::prev(behind);
  const auto offset = static_cast<std::size_t>(begin - start);
  if (offset >= loan.nbytes || nbytes > loan.nbytes - offset) return nullptr;
  return loan.lease.lock();
}

void PinnedPool::poll() noexcept {
  if (state_->is_in_child()) return;
  if (state_->wants_epoch()) state_->close_epoch();
  state_->poll_epochs();
  state_->bury();
}

std::size_t PinnedPool::trim(std::size_t keep_nbytes) noexcept {
  if (state_->is_in_child()) return 0;
  std::size_t nbytes = 0;
  while (const std::size_t more = state_->trim_one(keep_nbytes, 0)) nbytes += more;
  return nbytes;
}

std::size_t PinnedPool::set_limit(std::size_t limit_nbytes) noexcept {
  if (state_->is_in_child()) return 0;
  std::size_t before = 0;
  {
    const std::lock_guard lock(state_->mutex);
    before = std::exchange(state_->stats.limit_nbytes, limit_nbytes);
  }
  while (state_->trim_one(0, limit_nbytes) > 0) {
  }
  return before;
}

PinnedStats PinnedPool::stats() const noexcept {
  if (state_->is_in_child()) return state_->stats;
  const std::lock_guard lock(state_->mutex);
  return state_->stats;
}

}  // namespace ferry
