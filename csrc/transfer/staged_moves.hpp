// How a snapshot lies in staging, so that both ways, into it and out of it, take few copies: a pure function.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/layout.hpp"
#include "transfer/moves.hpp"

namespace ferry {

struct StagedMoves {
  std::vector<Move> into;    // from the source's data pointer to the slot's first byte
  std::vector<Move> out_of;  // from the slot's first byte to the destination's data pointer
};

// The snapshot is packed. Nothing when every way takes more than `most` moves into it, or out of it.
[[nodiscard]] std::optional<StagedMoves> staged_moves(const Layout& source, const Layout& destination,
                                                      std::size_t most);

}  // namespace ferry
