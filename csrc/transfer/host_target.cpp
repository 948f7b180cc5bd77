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

std::optional<cuda::CUdeviceptr> mapped_address(const HostTarget& host) {
  if (!host.lease) return std::nullopt;
  const ByteSpan bytes = span(host.ref.layout);
  const auto nbytes = static_cast<std::size_t>(bytes.high - bytes.low);
  if (host.lease->piece_nbytes(host.ref.data + bytes.low, nbytes) != nbytes) return std::nullopt;
  const auto low = host.lease->device_pointer(host.ref.data + bytes.low);
  if (!low) return std::nullopt;
  return *low - static_cast<cuda::CUdeviceptr>(bytes.low);  // unsigned arithmetic wraps as it should
}

}  // namespace ferry
