// What copies to and from pinned memory have to know of it.
#pragma once

#include <optional>
#include <vector>

#include "transfer/pinned_pieces.hpp"
#include "transfer/stream_work.hpp"
#include "transfer/transfers.hpp"

namespace ferry {

// The parts of `moves` that each lie inside one registration of that memory.
[[nodiscard]] std::vector<Move> inside_registrations(std::vector<Move> moves, HostEnd end, const HostTarget& host);

// Where the scope's device finds the data pointer of memory that kernels can store to as a whole. Throws Error.
[[nodiscard]] std::optional<cuda::CUdeviceptr> mapped_address(const HostTarget& host);

[[nodiscard]] inline HostHold hold_of(const HostTarget& host) { return {host.lease, host.owner}; }

}  // namespace ferry
