#include "transfer/host_target.hpp"

namespace ferry {

std::vector<Move> inside_registrations(std::vector<Move> moves, HostEnd end, const HostTarget& host) {
  if (!host.lease && !host.piece_nbytes) return moves;
  if (!host.lease) return inside_registrations(moves, end, host.ref.data, host.piece_nbytes);
  const auto piece_nbytes = [&host](const std::byte* data, std::size_t nbytes) {
    return host.lease->piece_nbytes(data, nbytes);
  };
  return inside_registrations(moves, end, host.ref.data, piece_nbytes);
}

}  // namespace ferry
