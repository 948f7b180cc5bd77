#include "host/panels.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "host/kernels/kernels.hpp"

namespace ferry {
namespace {

constexpr std::int64_t block_nbytes = 256 * 1024;  // a piece of a block, or of a long row
constexpr std::int64_t panel_nbytes = 64 * 1024;   // several short rows
constexpr auto longest = static_cast<std::int64_t>(longest_item_nbytes);
constexpr std::int64_t short_row_nbytes = 256;  // of the destination
constexpr std::int64_t tile_items = 64 * 64;    // of a rectangle that neither side walks item by item
constexpr std::int64_t short_row_items = 64;    // rows of the destination shorter than this are not made one by one
constexpr std::int64_t column_items = 2048;
constexpr std::int64_t small_panel_items = 64;  // a transpose of fewer takes longer to begin than to do

PairAxis take(PanelPlan& plan, std::size_t at) noexcept {
  const PairAxis taken = plan.rest[at];
  const auto begin = plan.rest.begin();
  std::copy(begin + static_cast<std::ptrdiff_t>(at) + 1, begin + static_cast<std::ptrdiff_t>(plan.rest_size),
            begin + static_cast<std::ptrdiff_t>(at));
  --plan.rest_size;
  return taken;
}

// Moves an axis of the rest towards the first; those it passes keep their order.
void move_to(PanelPlan& plan, std::size_t from, std::size_t to) noexcept {
  const auto begin = plan.rest.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(to), begin + static_cast<std::ptrdiff_t>(from),
              begin + static_cast<std::ptrdiff_t>(from) + 1);
}

// Short rows that both sides hold in one piece are larger items.
void join_items(PanelPlan& plan) noexcept {
  while (plan.rest_size > 1) {
    const PairAxis& first = plan.rest[0];
    const bool packed = first.to_step == plan.to_itemsize && first.from_step == plan.from_itemsize;
    const std::int64_t joined = first.extent * plan.to_itemsize;
    if (!packed || first.extent > longest || joined > longest) return;
    plan.to_itemsize = plan.from_itemsize = joined;
    take(plan, 0);
  }
}

// The axis along which the source moves least, other than the first.
std::size_t source_axis(const PanelPlan& plan) noexcept {
  std::size_t found = 1;
  for (std::size_t axis = 2; axis < plan.rest_size; ++axis) {
    if (std::abs(plan.rest[axis].from_step) < std::abs(plan.rest[found].from_step)) found = axis;
  }
  return found;
}

void turn_round(PanelPlan& plan, PairAxis& axis) noexcept {
  plan.to += (axis.extent - 1) * axis.to_step;
  plan.from += (axis.extent - 1) * axis.from_step;
  axis.to_step = -axis.to_step;
  axis.from_step = -axis.from_step;
}

// A short axis along which the destination moves item by item, and another that continues it, are walked together: the
// destination gets long rows.
void group_items(PanelPlan& plan) noexcept {
  const std::int64_t run = plan.inner.extent * plan.to_itemsize;
  if (run >= short_row_nbytes) return;
  for (std::size_t axis = 0; axis < plan.rest_size; ++axis) {
    if (plan.rest[axis].to_step != run) continue;
    plan.group = plan.inner;
    plan.inner = take(plan, axis);
    return;
  }
}

void ungroup_items(PanelPlan& plan) noexcept {
  if (plan.group.extent == 1) return;
  plan.rest[plan.rest_size++] = plan.inner;
  plan.inner = plan.group;
  plan.group = {1, 0, 0};
}

void plan_transpose(PanelPlan& plan, std::int64_t scratch_nbytes) noexcept {
  plan.path = CopyPath::transpose;
  plan.outer_first = true;
  // Four cache lines of the source at a time, and as much of a row of the destination as the scratch holds.
  plan.outer_chunk = std::min(plan.outer.extent, std::max<std::int64_t>(256 / plan.from_itemsize, few_items));
  const std::int64_t column_nbytes = plan.outer_chunk * plan.group.extent * plan.from_itemsize;
  plan.inner_chunk = std::max<std::int64_t>(scratch_nbytes / column_nbytes, 1);
  if (plan.inner_chunk > few_items) plan.inner_chunk = plan.inner_chunk / few_items * few_items;
}

void plan_columns(PanelPlan& plan, std::int64_t scratch_nbytes) noexcept {
  plan.path = CopyPath::columns;
  plan.inner_chunk = plan.inner.extent;
  const std::int64_t fit = scratch_nbytes / (plan.inner.extent * plan.to_itemsize);
  plan.outer_chunk = std::clamp<std::int64_t>(fit, 1, column_items);
}

bool would_be_small(const PanelPlan& plan) noexcept {
  return plan.inner.extent * plan.group.extent * plan.outer.extent < small_panel_items;
}

// The axis along which both sides move least, of those that are long enough to loop over; rest_size if none is.
std::size_t deep_axis(const PanelPlan& plan) noexcept {
  std::size_t found = plan.rest_size;
  for (std::size_t axis = 0; axis < plan.rest_size; ++axis) {
    if (plan.rest[axis].extent < few_items) continue;
    if (found == plan.rest_size || plan.rest[axis].reach() < plan.rest[found].reach()) found = axis;
  }
  return found;
}

// Boxes of three axes, if a rectangle of two has few items. Short axes of the rest are walked before the third one goes
// on, so that lines stay in the caches until all of them have been used.
void plan_steps(PanelPlan& plan) noexcept {
  plan.path = CopyPath::steps;
  plan.inner_chunk = std::max<std::int64_t>(tile_items / std::min<std::int64_t>(plan.outer.extent, 64), 1);
  plan.outer_chunk = std::max<std::int64_t>(tile_items / std::min<std::int64_t>(plan.inner.extent, 64), 1);
  const std::int64_t items =
      std::min(plan.inner.extent, plan.inner_chunk) * std::min(plan.outer.extent, plan.outer_chunk);
  const std::size_t at = deep_axis(plan);
  if (at == plan.rest_size || items > tile_items / 16) return;
  plan.deep = take(plan, at);
  plan.deep_chunk = tile_items / items;
  plan.rest[plan.rest_size++] = {(plan.deep.extent + plan.deep_chunk - 1) / plan.deep_chunk,
                                 plan.deep.to_step * plan.deep_chunk, plan.deep.from_step * plan.deep_chunk};
  move_to(plan, plan.rest_size - 1, 0);
  plan.deep_at = 0;
  for (std::size_t axis = 1; axis < plan.rest_size; ++axis) {
    if (plan.rest[axis].extent < few_items) move_to(plan, axis, plan.deep_at++);
  }
}

void plan_rows(PanelPlan& plan, bool alone) noexcept {
  const std::int64_t itemsize = std::max(plan.to_itemsize, plan.from_itemsize);
  const bool packed = plan.inner.to_step == plan.to_itemsize && plan.inner.from_step == plan.from_itemsize;
  plan.path = !packed ? CopyPath::steps : alone ? CopyPath::block : CopyPath::rows;
  plan.inner_chunk = std::max<std::int64_t>(block_nbytes / itemsize, 1);
  const std::int64_t row = std::min(plan.inner.extent, plan.inner_chunk) * itemsize;
  plan.outer_chunk = std::max<std::int64_t>(panel_nbytes / row, 1);
}

}  // namespace

void PanelPlan::cut(std::int64_t inner_items, std::int64_t outer_items) noexcept {
  inner_chunk = std::min(inner_items, inner.extent);
  outer_chunk = std::min(outer_items, outer.extent);
  panels = ((inner.extent + inner_chunk - 1) / inner_chunk) * ((outer.extent + outer_chunk - 1) / outer_chunk);
  for (std::size_t axis = 0; axis < rest_size; ++axis) panels *= rest[axis].extent;
}

PanelPlan plan_panels(const Walk<2>& walk, std::int64_t to_itemsize, std::int64_t from_itemsize, bool bits_move,
                      std::int64_t scratch_nbytes) {
  PanelPlan plan;
  plan.to_itemsize = to_itemsize;
  plan.from_itemsize = from_itemsize;
  plan.to = walk.base()[0];
  plan.from = walk.base()[1];
  plan.to_nbytes = to_itemsize;
  for (const auto& axis : walk.axes()) {
    plan.rest[plan.rest_size++] = {axis.extent, axis.steps[0], axis.steps[1]};
    plan.to_nbytes *= axis.extent;
  }
  if (bits_move) join_items(plan);
  const bool alone = plan.rest_size == 1;
  const std::size_t nearest = alone ? 0 : source_axis(plan);
  const PairAxis& first = plan.rest[0];
  const bool crossed =
      !alone && std::abs(plan.rest[nearest].from_step) < std::abs(first.from_step) && plan.rest[nearest].from_step != 0;
  if (crossed) {
    plan.outer = take(plan, nearest);
    plan.inner = take(plan, 0);
    if (plan.outer.from_step < 0) turn_round(plan, plan.outer);
    const bool is_word =
        plan.from_itemsize <= 16 && std::has_single_bit(static_cast<std::uint64_t>(plan.from_itemsize));
    bool item_by_item = is_word && plan.inner.to_step == plan.to_itemsize && plan.outer.from_step == plan.from_itemsize;
    if (item_by_item) group_items(plan);
    if (would_be_small(plan) && deep_axis(plan) < plan.rest_size) item_by_item = false;
    // Values that are made as well as moved are made in long rows.
    if (item_by_item && !bits_move && plan.inner.extent * plan.group.extent < short_row_items) {
      ungroup_items(plan);
      plan_columns(plan, scratch_nbytes);
    } else if (item_by_item) {
      plan_transpose(plan, scratch_nbytes);
    } else {
      ungroup_items(plan);
      plan_steps(plan);
    }
  } else {
    plan.inner = take(plan, 0);
    if (!alone) plan.outer = take(plan, 0);
    plan_rows(plan, alone);
    if (plan.path == CopyPath::steps && plan.inner.extent < few_items) plan_steps(plan);
  }
  plan.cut(plan.inner_chunk, plan.outer_chunk);
  return plan;
}

}  // namespace ferry
