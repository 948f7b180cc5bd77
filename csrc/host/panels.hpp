// Cuts a copy between two layouts into panels: rectangles of two axes that one kernel copies at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/layout.hpp"
#include "host/walk.hpp"

namespace ferry {

enum class CopyPath : std::uint8_t {
  block,      // both sides are one block: bytes
  rows,       // both walk the inner axis item by item
  transpose,  // the destination walks the inner axis item by item, the source the outer one
  columns,    // the same; rows of the destination are so short that columns of it are made, and transposed
  steps,      // one side, or none, has an axis that it walks item by item
};

inline constexpr std::int64_t few_items = 16;  // loops shorter than this cost more than their items

struct PairAxis {
  std::int64_t extent;
  std::int64_t to_step;
  std::int64_t from_step;

  // What an item along it costs, roughly: a line that is written before it is full costs more than one read again.
  [[nodiscard]] std::int64_t reach() const noexcept { return 4 * std::abs(to_step) + std::abs(from_step); }
};

struct Panel {
  std::byte* to;
  const std::byte* from;
  std::int64_t inner;  // extents of this panel
  std::int64_t outer;
  std::int64_t deep;
};

struct PanelPlan {
  CopyPath path = CopyPath::block;
  std::int64_t to_itemsize = 1;
  std::int64_t from_itemsize = 1;
  PairAxis inner{1, 0, 0};
  PairAxis outer{1, 0, 0};
  PairAxis deep{1, 0, 0};  // a third axis, where a rectangle of the other two would be small
  // Of a transpose: what stands for one item of the inner axis, item by item for the destination.
  PairAxis group{1, 0, 0};
  std::int64_t inner_chunk = 1;  // largest extents of a panel
  std::int64_t outer_chunk = 1;
  std::int64_t deep_chunk = 1;
  bool outer_first = false;                                       // the next panel lies along the outer axis
  std::array<PairAxis, static_cast<std::size_t>(max_ndim)> rest;  // only the first rest_size are set
  std::size_t rest_size = 0;
  std::size_t deep_at = max_ndim;  // which of the rest counts chunks of the deep axis
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t panels = 1;
  std::int64_t to_nbytes = 0;  // of all panels

  void cut(std::int64_t inner_items, std::int64_t outer_items) noexcept;  // to panels of at most this size

  // Calls visit(panel) for the panels [first, last).
  template <class Visit>
  void for_each_panel(std::int64_t first, std::int64_t last, Visit&& visit) const;
};

// A pure function of both layouts. With `bits_move` a copy of the bytes is what is wanted, and items may be joined to
// larger ones. `scratch_nbytes` bounds what a panel that is transposed takes on its way.
[[nodiscard]] PanelPlan plan_panels(const Walk<2>& walk, std::int64_t to_itemsize, std::int64_t from_itemsize,
                                    bool bits_move, std::int64_t scratch_nbytes);

template <class Visit>
void PanelPlan::for_each_panel(std::int64_t first, std::int64_t last, Visit&& visit) const {
  const std::int64_t inner_count = (inner.extent + inner_chunk - 1) / inner_chunk;
  const std::int64_t outer_count = (outer.extent + outer_chunk - 1) / outer_chunk;
  std::array<std::int64_t, static_cast<std::size_t>(max_ndim)> index{};
  std::int64_t at = first;
  std::int64_t& fast = outer_first ? index[1] : index[0];
  std::int64_t& slow = outer_first ? index[0] : index[1];
  const std::int64_t fast_count = outer_first ? outer_count : inner_count;
  const std::int64_t slow_count = outer_first ? inner_count : outer_count;
  fast = at % fast_count;
  at /= fast_count;
  slow = at % slow_count;
  at /= slow_count;
  std::byte* to_base = to;
  const std::byte* from_base = from;
  std::array<std::int64_t, static_cast<std::size_t>(max_ndim)> rest_index{};
  for (std::size_t axis = 0; axis < rest_size; ++axis) {
    rest_index[axis] = at % rest[axis].extent;
    at /= rest[axis].extent;
    to_base += rest_index[axis] * rest[axis].to_step;
    from_base += rest_index[axis] * rest[axis].from_step;
  }
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::int64_t i = index[0] * inner_chunk;
    const std::int64_t o = index[1] * outer_chunk;
    visit(Panel{to_base + i * inner.to_step + o * outer.to_step, from_base + i * inner.from_step + o * outer.from_step,
                std::min(inner_chunk, inner.extent - i), std::min(outer_chunk, outer.extent - o),
                deep_at < rest_size ? std::min(deep_chunk, deep.extent - rest_index[deep_at] * deep_chunk) : 1});
    if (++fast < fast_count) continue;
    fast = 0;
    if (++slow < slow_count) continue;
    slow = 0;
    for (std::size_t axis = 0; axis < rest_size; ++axis) {
      to_base += rest[axis].to_step;
      from_base += rest[axis].from_step;
      if (++rest_index[axis] < rest[axis].extent) break;
      to_base -= rest[axis].extent * rest[axis].to_step;
      from_base -= rest[axis].extent * rest[axis].from_step;
      rest_index[axis] = 0;
    }
  }
}

}  // namespace ferry
