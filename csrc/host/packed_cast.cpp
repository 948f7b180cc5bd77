#include "host/packed_cast.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "host/carry.hpp"
#include "host/kernels/kernels.hpp"
#include "host/parallel.hpp"

namespace ferry {
namespace {

constexpr std::int64_t scratch_nbytes = 32 * 1024;
constexpr std::int64_t short_row_items = 64;  // a loop over values takes about as long to begin as to make so many
constexpr std::int64_t piece_nbytes = 256 * 1024;

// The walk, cut into runs of the destination: all of its first axes, and a part of the next one.
class Runs {
 public:
  Runs(const Walk<2>& walk, std::int64_t to_itemsize, std::int64_t most) noexcept : walk_(walk) {
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

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t longest() const noexcept { return items_ * chunk_; }

  // Where run number `at` begins, and how much of the axis that is cut it takes.
  struct Run {
    Walk<2>::Pointers begin;
    std::int64_t chunk;
    std::int64_t items;
  };
  [[nodiscard]] Run run(std::int64_t at) const noexcept {
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

  // The items of a run, packed in `scratch`.
  [[nodiscard]] Walk<2> packing(const Run& run, std::byte* scratch, std::int64_t itemsize) const {
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
    return Walk<2>(shape, {&to, &from}, {scratch, run.begin[1]}, WalkOrder::fastest);
  }

 private:
  const Walk<2>& walk_;
  std::size_t whole_ = 0;
  std::int64_t items_ = 1;  // of the whole axes
  std::int64_t chunk_ = 1;  // of the one after them
  std::int64_t count_ = 1;
};

// Does the source hold long columns of the destination, each in one piece? If those are transposed once they have been
// made, and are no larger then, less is transposed.
bool has_long_columns(const Walk<2>& walk, std::int64_t from_itemsize) noexcept {
  return std::any_of(walk.axes().begin() + 1, walk.axes().end(), [=](const auto& axis) {
    return std::abs(axis.steps[1]) == from_itemsize && axis.extent >= short_row_items;
  });
}

}  // namespace

bool carry_packed(const Walk<2>& walk, const RowPass& pass, std::int64_t to_itemsize, std::int64_t from_itemsize) {
  const Runs runs(walk, to_itemsize, scratch_nbytes / std::max(to_itemsize, from_itemsize));
  if (walk.axes()[0].extent >= short_row_items || runs.longest() < short_row_items) return false;
  if (to_itemsize <= from_itemsize && has_long_columns(walk, from_itemsize)) return false;
  const RowPass move{kernels().move[static_cast<std::size_t>(from_itemsize - 1)], true, true};
  const std::int64_t nbytes = walk.count() * std::max(to_itemsize, from_itemsize);
  const std::int64_t per_piece = std::max<std::int64_t>(piece_nbytes * runs.count() / nbytes, 1);
  parallel_for(useful_threads(nbytes), (runs.count() + per_piece - 1) / per_piece, [&](std::int64_t piece) noexcept {
    const ThreadLimit alone(1);
    alignas(64) std::array<std::byte, static_cast<std::size_t>(scratch_nbytes)> scratch;
    const std::int64_t end = std::min((piece + 1) * per_piece, runs.count());
    for (std::int64_t at = piece * per_piece; at < end; ++at) {
      const Runs::Run run = runs.run(at);
      carry_rows(runs.packing(run, scratch.data(), from_itemsize), move, from_itemsize, from_itemsize);
      pass.row(run.begin[0], to_itemsize, scratch.data(), from_itemsize, run.items);
    }
  });
  return true;
}

}  // namespace ferry
