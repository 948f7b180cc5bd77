// Which driver copies bring the elements of one layout into another: a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/layout.hpp"

namespace ferry {

// Rows of equal width; one row is a plain copy. Offsets are relative to the data pointers, pitches go from row to row.
struct Move {
  std::int64_t source_offset = 0;
  std::int64_t destination_offset = 0;
  std::int64_t width_nbytes = 0;
  std::int64_t rows = 1;
  std::int64_t source_pitch = 0;
  std::int64_t destination_pitch = 0;

  bool operator==(const Move&) const = default;
};

// Both layouts have the same shape and item size, the destination no overlap. As few moves as the layouts allow: axes
// of one element dropped, mergeable ones merged, an axis that runs backwards in both turned round in both, contiguous
// bytes in one row, and rows at a fixed step (not smaller than their width, in both) in one move. Nothing when it would
// take more than `most`.
[[nodiscard]] std::optional<std::vector<Move>> moves_between(const Layout& source, const Layout& destination,
                                                             std::size_t most);

// Cuts a move of one row, or a move of many, into parts of at most `nbytes` each (a row wider than that is cut, too).
[[nodiscard]] std::vector<Move> chunks_of(const Move& move, std::int64_t nbytes);

}  // namespace ferry
