#include "pinned/idle_blocks.hpp"

#include <iterator>
#include <limits>

namespace ferry {
namespace {

constexpr std::size_t waste_divisor = 8;

}  // namespace

void IdleBlocks::forget(std::size_t capacity) noexcept {
  const auto shelf = shelves_.find(capacity);
  if (shelf != shelves_.end() && --shelf->second.blocks == 0) shelves_.erase(shelf);
}

void IdleBlocks::give(std::unique_ptr<PinnedSlot> slot) noexcept {
  nbytes_ += slot->capacity;
  SlotList& idle = shelves_.at(slot->capacity).idle;
  append(idle, std::move(slot));
}

std::unique_ptr<PinnedSlot> IdleBlocks::take(Shelf& shelf, SlotList::iterator at) noexcept {
  nbytes_ -= (*at)->capacity;
  return taken(shelf.idle, at);
}

std::unique_ptr<PinnedSlot> IdleBlocks::best_fit(std::size_t wanted) noexcept {
  for (auto at = shelves_.lower_bound(wanted); at != shelves_.end(); ++at) {
    auto& [capacity, shelf] = *at;
    if (capacity - wanted > wanted / waste_divisor) break;
    if (!shelf.idle.empty()) return take(shelf, std::prev(shelf.idle.end()));
  }
  return nullptr;
}

std::unique_ptr<PinnedSlot> IdleBlocks::longest_unused() noexcept {
  Shelf* oldest = nullptr;
  for (auto& [capacity, shelf] : shelves_) {
    if (shelf.idle.empty()) continue;
    if (oldest == nullptr || shelf.idle.front()->returned < oldest->idle.front()->returned) oldest = &shelf;
  }
  return oldest == nullptr ? nullptr : take(*oldest, oldest->idle.begin());
}

std::uint64_t IdleBlocks::oldest_return() const noexcept {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [capacity, shelf] : shelves_) {
    if (!shelf.idle.empty() && shelf.idle.front()->returned < oldest) oldest = shelf.idle.front()->returned;
  }
  return oldest;
}

}  // namespace ferry
