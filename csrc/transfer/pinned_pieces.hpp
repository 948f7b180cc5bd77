// No driver copy may cross from one registration of host memory to the next.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "transfer/moves.hpp"

namespace ferry {

enum class HostEnd : unsigned char { source, destination };

// How many of the bytes from an address on lie inside one registration: piece_nbytes of a PinnedLease or PinnedBlock.
using PieceNbytes = std::function<std::size_t(const std::byte*, std::size_t)>;

// The parts of `moves`, in the same order, that each lie inside one registration at their host end, whose data
// pointer is `host`.
[[nodiscard]] std::vector<Move> inside_registrations(const std::vector<Move>& moves, HostEnd end, const std::byte* host,
                                                     const PieceNbytes& piece_nbytes);

}  // namespace ferry
