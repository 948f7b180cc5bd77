// A piece of pinned memory that is lent as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/event.hpp"
#include "pinned/pinned_block.hpp"

namespace ferry {

class Slab;
struct PinnedSlot;
using SlotList = std::list<std::unique_ptr<PinnedSlot>>;

struct PinnedSlot {
  std::byte* data = nullptr;
  std::size_t capacity = 0;
  std::optional<PinnedBlock> block{};  // of its own,
  Slab* slab = nullptr;                // or a part of this
  std::vector<cuda::Event> holds{};    // what its next loan waits for besides an epoch
  std::uint64_t loan = 0;              // number of its last loan
  std::uint64_t returned = 0;          // number of its last return
  SlotList node = SlotList(1);         // its node while it is in no list, so that to append it allocates nothing
};

inline void append(SlotList& list, std::unique_ptr<PinnedSlot> slot) noexcept {
  SlotList one;
  one.splice(one.begin(), slot->node);
  one.front() = std::move(slot);
  list.splice(list.end(), one);
}

[[nodiscard]] inline std::unique_ptr<PinnedSlot> taken(SlotList& list, SlotList::iterator at) noexcept {
  std::unique_ptr<PinnedSlot> slot = std::move(*at);
  slot->node.splice(slot->node.begin(), list, at);
  return slot;
}

}  // namespace ferry
