#include "transfer/ring_copies.hpp"

#include <exception>

#include "transfer/driver_copy.hpp"
#include "transfer/pinned_pieces.hpp"

namespace ferry {

std::shared_ptr<const cuda::Event> RingCopies::enqueue(const RingChunk& chunk, RingPiece& piece) {
  const bool to_host = way_ == RingWay::to_host;
  const auto device = static_cast<std::uintptr_t>(device_address(tensor_.ref.data + chunk.device_offset));
  const auto host = reinterpret_cast<std::uintptr_t>(piece.data());
  const CopyEnds ends = to_host ? CopyEnds{host, device} : CopyEnds{device, host};
  const std::vector<Move> moves = inside_registrations(
      chunk.moves, to_host ? HostEnd::destination : HostEnd::source, piece.data(),
      [&piece](const std::byte* data, std::size_t nbytes) { return piece.piece_nbytes(data, nbytes); });
  auto event = std::make_shared<const cuda::Event>(runtime_.events().take(scope_, cuda::EventUse::waiting));
  std::exception_ptr failure;
  kept_.touched();
  piece.given_to_device();
  try {
    for (const Move& move : moves) {
      enqueue_copy(runtime_.functions(), to_host ? CopyKind::to_host : CopyKind::to_device, ends, move, tensor_.stream);
    }
  } catch (...) {
    failure = std::current_exception();  // what was enqueued before is marked all the same
  }
  event->record(tensor_.stream);
  kept_.marked_by(event);
  if (failure) {
    piece.used_until(event);
    std::rethrow_exception(failure);
  }
  return event;
}

}  // namespace ferry
