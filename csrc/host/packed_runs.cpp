#include "host/packed_runs.hpp"

#include <cstdlib>

#include "host/carry.hpp"
#include "host/kernels/kernels.hpp"
#include "host/row_pass.hpp"

namespace ferry {
namespace {

constexpr std::int64_t short_row_items = 64;  // a loop over values takes about as long to begin as to make so many

// Does the source hold long columns of the destination, each in one piece? If those are transposed once they have been
// made, and are no larger then, less is transposed.
bool has_long_columns(const Walk<2>& walk, std::int64_t from_itemsize) noexcept {
  return std::any_of(walk.axes().begin() + 1, walk.axes().end(), [=](const auto& axis) {
    return std::abs(axis.steps[1]) == from_itemsize && axis.extent >= short_row_items;
  });
}

}  // namespace

PackedRuns::PackedRuns(const Walk<2>& walk, std::int64_t to_itemsize, std::int64_t most) noexcept : walk_(walk) {
  std::int64_t next = to_itemsize;
  for (const auto& axis : walk.axes()) {
    if (axis.steps[0] != next || items_ * axis.extent > most) break;
    items_ *= axis.extent;
    next *= axis.extent;
    ++whole_;
  }
  if (whole_ == walk.axes().size()) return;
  const auto& cut = walk.axes()[whole_];
  if (cut.steps[0] == next) chunk_ = std::max<std::int64_t>(most / items_, 1);
  count_ = (cut.extent + chunk_ - 1) / chunk_;
  for (std::size_t axis = whole_ + 1; axis < walk.axes().size(); ++axis) count_ *= walk.axes()[axis].extent;
}

bool PackedRuns::help(std::int64_t to_itemsize, std::int64_t from_itemsize) const noexcept {
  if (walk_.axes()[0].extent >= short_row_items || items_ * chunk_ < short_row_items) return false;
  return to_itemsize > from_itemsize || !has_long_columns(walk_, from_itemsize);
}

PackedRuns::Run PackedRuns::run(std::int64_t at) const noexcept {
  Run found{walk_.base(), 1, items_};
  for (std::size_t axis = whole_; axis < walk_.axes().size(); ++axis) {
    const auto& [extent, steps] = walk_.axes()[axis];
    const std::int64_t chunk = axis == whole_ ? chunk_ : 1;
    const std::int64_t chunks = (extent + chunk - 1) / chunk;
    const std::int64_t first = at % chunks * chunk;
    at /= chunks;
    for (std::size_t side = 0; side < 2; ++side) found.begin[side] += first * steps[side];
    if (axis == whole_) found.chunk = std::min(chunk, extent - first);
  }
  found.items *= found.chunk;
  return found;
}

void PackedRuns::pack(const Run& run, std::byte* scratch, std::int64_t itemsize) const {
  const std::size_t axes = std::min(whole_ + 1, walk_.axes().size());
  Extents shape(static_cast<int>(axes));
  Extents to(static_cast<int>(axes));
  Extents from(static_cast<int>(axes));
  std::int64_t step = itemsize;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const int at = static_cast<int>(axes - 1 - axis);
    shape[at] = axis == whole_ ? run.chunk : walk_.axes()[axis].extent;
    to[at] = step;
    from[at] = walk_.axes()[axis].steps[1];
    step *= shape[at];
  }
  const RowPass move{kernels().move[static_cast<std::size_t>(itemsize - 1)], true, true};
  carry_rows(Walk<2>(shape, {&to, &from}, {scratch, run.begin[1]}, WalkOrder::fastest), move, itemsize, itemsize);
}

}  // namespace ferry
