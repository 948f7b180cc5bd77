// From devices to memory that is not pinned, packed and cast by kernels on the way.
#include <algorithm>
#include <utility>

#include "host/copy.hpp"
#include "transfer/arriving.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/pack_chunks.hpp"
#include "transfer/pack_ring.hpp"
#include "transfer/pinned_pieces.hpp"
#include "transfer/ring_packing.hpp"
#include "transfer/transfers.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_in_flight = 3;
constexpr std::size_t ring_slots = 4;

// Throws Error; the piece is marked, or given up.
std::shared_ptr<const cuda::Event> enqueue(PackRing& ring, const PackChunk& chunk, DType dtype, RingPiece& piece) {
  const std::vector<Move> moves = inside_registrations(
      {{0, 0, chunk.nbytes, 1, 0, 0}}, HostEnd::destination, piece.data(),
      [&piece](const std::byte* data, std::size_t nbytes) { return piece.piece_nbytes(data, nbytes); });
  piece.given_to_device();
  try {
    return ring.enqueue(chunk, dtype, reinterpret_cast<std::uintptr_t>(piece.data()), moves);
  } catch (...) {
    if (ring.is_lost()) throw;
    if (ring.last_copied()) {
      piece.used_until(ring.last_copied());
    } else {
      piece.done_with();
    }
    throw;
  }
}

TensorRef part_of(const TensorRef& whole, std::byte* data, const Layout& layout, DType dtype) {
  TensorRef ref = whole;
  ref.data = data;
  ref.layout = layout;
  ref.dtype = dtype;
  return ref;
}

}  // namespace

bool Transfers::download_packed(const cuda::ContextScope& scope, const std::shared_ptr<HostRing>& through,
                                const DeviceTensor& source, const TensorRef& destination) {
  const cuda::Kernels* kernels = this->kernels(scope, source.stream);
  const std::shared_ptr<DeviceStaging> staging = this->staging(scope);
  if (kernels == nullptr || !staging) return false;
  const auto packing = ring_packing(source.ref, destination, link(source.device));
  if (!packing) return false;
  const DType dtype = packing->dtype;
  const std::size_t part = std::min(through->slot_nbytes(scope), limits_.staging_nbytes / ring_slots);
  auto slots = staging->take_some(part, ring_slots, source.stream, limits_.most_in_flight);
  if (slots.empty()) return false;
  staging->order_after_memory(source.stream);
  const auto chunks = pack_chunks(source.ref.layout, destination.layout, std::int64_t{info(dtype).itemsize},
                                  static_cast<std::int64_t>(part), Repeated::once);
  Arriving<PackChunk> arriving;
  PackRing ring(runtime_, retired_, scope, *kernels, source, std::move(slots));
  for (auto next = chunks.begin(); next != chunks.end() || !arriving.empty();) {
    while (next != chunks.end() && arriving.size() < most_in_flight) {
      const auto nbytes = static_cast<std::size_t>(next->nbytes);
      // Who holds a piece never waits for another one: then somebody can always go on.
      auto piece = arriving.empty() ? through->take(scope, nbytes) : through->try_take(scope, nbytes);
      if (!piece) break;
      auto event = enqueue(ring, *next, dtype, *piece);
      arriving.push(*next++, std::move(*piece), std::move(event));
    }
    arriving.finish_first(runtime_.functions(), [&](const PackChunk& chunk, const RingPiece& piece) {
      copy(part_of(destination, destination.data + chunk.host_offset, chunk.host, destination.dtype),
           part_of(source.ref, piece.data(), chunk.landing, dtype));
    });
  }
  return true;
}

}  // namespace ferry
