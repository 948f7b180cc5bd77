#include "transfer/moves.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "core/checked_math.hpp"

namespace ferry {
namespace {

struct Axis {
  std::int64_t extent;
  std::int64_t source;       // step in bytes
  std::int64_t destination;  // never negative
};

struct Axes {
  std::array<Axis, max_ndim> axes;  // fastest in the destination first
  std::size_t size = 0;
  std::int64_t source_offset = 0;
  std::int64_t destination_offset = 0;

  [[nodiscard]] Axis& operator[](std::size_t at) noexcept { return axes[at]; }
};

// The driver refuses pitches beyond its attribute MAX_PITCH, which is this on every device.
constexpr std::int64_t largest_pitch = std::numeric_limits<std::int32_t>::max();

Axes axes_of(const Layout& source, const Layout& destination) noexcept {
  Axes found;
  for (int i = 0; i < source.ndim(); ++i) {
    if (source.shape[i] == 1) continue;
    Axis axis{source.shape[i], source.strides[i], destination.strides[i]};
    if (axis.destination < 0) {
      found.source_offset += (axis.extent - 1) * axis.source;
      found.destination_offset += (axis.extent - 1) * axis.destination;
      axis.source = -axis.source;
      axis.destination = -axis.destination;
    }
    found.axes[found.size++] = axis;
  }
  std::stable_sort(found.axes.begin(), found.axes.begin() + found.size,
                   [](const Axis& a, const Axis& b) { return a.destination < b.destination; });
  return found;
}

void merge(Axes& axes) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < axes.size; ++i) {
    const Axis next = axes[i];
    if (kept > 0) {
      Axis& inner = axes[kept - 1];
      if (next.source == inner.source * inner.extent && next.destination == inner.destination * inner.extent) {
        inner.extent *= next.extent;
        continue;
      }
    }
    axes[kept++] = next;
  }
  axes.size = kept;
}

void drop(Axes& axes, std::size_t at) noexcept {
  std::copy(axes.axes.begin() + at + 1, axes.axes.begin() + axes.size, axes.axes.begin() + at);
  --axes.size;
}

bool can_be_rows(const Axis& axis, std::int64_t width) noexcept {
  return axis.source >= width && axis.destination >= width && axis.source <= largest_pitch &&
         axis.destination <= largest_pitch;
}

// Takes the longest axis that one move can go along out of `axes`.
void take_rows(Axes& axes, Move& move) noexcept {
  std::size_t best = axes.size;
  for (std::size_t i = 0; i < axes.size; ++i) {
    if (can_be_rows(axes[i], move.width_nbytes) && (best == axes.size || axes[i].extent > axes[best].extent)) best = i;
  }
  if (best == axes.size) return;
  move.rows = axes[best].extent;
  move.source_pitch = axes[best].source;
  move.destination_pitch = axes[best].destination;
  drop(axes, best);
}

std::optional<std::int64_t> repetitions(Axes& axes) noexcept {
  std::int64_t count = 1;
  for (std::size_t i = 0; i < axes.size; ++i) {
    const auto product = checked_mul(count, axes[i].extent);
    if (!product) return std::nullopt;
    count = *product;
  }
  return count;
}

Move part_of_row(const Move& move, std::int64_t row, std::int64_t first, std::int64_t nbytes) noexcept {
  return {move.source_offset + row * move.source_pitch + first,
          move.destination_offset + row * move.destination_pitch + first,
          nbytes,
          1,
          0,
          0};
}

}  // namespace

std::optional<std::vector<Move>> moves_between(const Layout& source, const Layout& destination, std::size_t most) {
  const auto elements = element_count(source.shape);
  if (!elements) return std::nullopt;
  if (*elements == 0) return std::vector<Move>{};
  Axes axes = axes_of(source, destination);
  merge(axes);
  Move move;
  move.width_nbytes = source.itemsize;
  if (axes.size > 0 && axes[0].source == source.itemsize && axes[0].destination == source.itemsize) {
    move.width_nbytes *= axes[0].extent;
    drop(axes, 0);
  }
  take_rows(axes, move);
  const auto count = repetitions(axes);
  if (!count || static_cast<std::uint64_t>(*count) > most) return std::nullopt;
  move.source_offset = axes.source_offset;
  move.destination_offset = axes.destination_offset;
  std::vector<Move> moves;
  moves.reserve(static_cast<std::size_t>(*count));
  std::array<std::int64_t, max_ndim> index{};
  for (;;) {
    moves.push_back(move);
    std::size_t at = 0;
    for (; at < axes.size; ++at) {
      const Axis& axis = axes[at];
      const bool wraps = ++index[at] == axis.extent;
      const std::int64_t steps = wraps ? 1 - axis.extent : 1;
      move.source_offset += steps * axis.source;
      move.destination_offset += steps * axis.destination;
      if (!wraps) break;
      index[at] = 0;
    }
    if (at == axes.size) return moves;
  }
}

std::vector<Move> chunks_of(const Move& move, std::int64_t nbytes) {
  std::vector<Move> chunks;
  if (move.width_nbytes > nbytes || move.rows == 1) {
    for (std::int64_t row = 0; row < move.rows; ++row) {
      for (std::int64_t first = 0; first < move.width_nbytes; first += nbytes) {
        chunks.push_back(part_of_row(move, row, first, std::min(nbytes, move.width_nbytes - first)));
      }
    }
    return chunks;
  }
  const std::int64_t most_rows = nbytes / move.width_nbytes;
  for (std::int64_t row = 0; row < move.rows; row += most_rows) {
    Move chunk = part_of_row(move, row, 0, move.width_nbytes);
    chunk.rows = std::min(most_rows, move.rows - row);
    if (chunk.rows > 1) {
      chunk.source_pitch = move.source_pitch;
      chunk.destination_pitch = move.destination_pitch;
    }
    chunks.push_back(chunk);
  }
  return chunks;
}

}  // namespace ferry
