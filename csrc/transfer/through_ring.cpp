// The two ways between device tensors and memory that is not pinned.
#include <algorithm>
#include <string>
#include <utility>

#include "core/dtype.hpp"
#include "host/copy.hpp"
#include "transfer/arriving.hpp"
#include "transfer/refusals.hpp"
#include "transfer/ring_copies.hpp"
#include "transfer/transfers.hpp"

namespace ferry {
namespace {

constexpr std::int64_t parts = 4;  // so that the host copies while the device does
constexpr std::int64_t smallest_part_nbytes = std::int64_t{1} << 20;
constexpr std::size_t most_in_flight = 3;

std::int64_t part_nbytes(const Layout& device, std::size_t slot_nbytes) {
  const std::int64_t whole = element_count(device.shape).value_or(0) * device.itemsize;
  return std::min(static_cast<std::int64_t>(slot_nbytes), std::max(whole / parts, smallest_part_nbytes));
}

TensorRef in_piece(const TensorRef& like, const RingChunk& chunk, const RingPiece& piece) {
  TensorRef ref = like;
  ref.data = piece.data();
  ref.layout = chunk.landing;
  return ref;
}

TensorRef in_host(const TensorRef& whole, const RingChunk& chunk) {
  TensorRef ref = whole;
  ref.data += chunk.host_offset;
  ref.layout = chunk.host;
  return ref;
}

}  // namespace

void Transfers::download_through_ring(const DeviceTensor& source, const TensorRef& destination) {
  refuse_repacking(destination, source.ref);
  refuse_overlap(destination);
  if (element_count(source.ref.layout.shape) == 0) return;
  reap();
  const bool may_pack = has_kernels_and_staging(source);
  const cuda::ContextScope scope = enter(source);
  refuse_stream(runtime_.functions(), source);
  const std::shared_ptr<HostRing> through = ring(scope, cuda::Direction::to_host);
  if (may_pack && download_packed(scope, through, source, destination)) return;
  const auto chunks = ring_chunks(source.ref.layout, destination.layout,
                                  part_nbytes(source.ref.layout, through->slot_nbytes(scope)), RingWay::to_host);
  if (!chunks) throw too_sparse(source.ref);
  RingCopies copies(runtime_, scope, retired_, source, RingWay::to_host);
  Arriving<RingChunk> arriving;
  auto next = chunks->begin();
  while (next != chunks->end() || !arriving.empty()) {
    while (next != chunks->end() && arriving.size() < most_in_flight) {
      const auto nbytes = static_cast<std::size_t>(next->landing_nbytes);
      // Who holds a piece never waits for another one: then somebody can always go on.
      auto piece = arriving.empty() ? through->take(scope, nbytes) : through->try_take(scope, nbytes);
      if (!piece) break;
      auto event = copies.enqueue(*next, *piece);
      arriving.push(*next++, std::move(*piece), std::move(event));
    }
    arriving.finish_first(runtime_.functions(), [&](const RingChunk& chunk, const RingPiece& piece) {
      copy(in_host(destination, chunk), in_piece(source.ref, chunk, piece));
    });
  }
  copies.seen_done();
}

std::shared_ptr<Pending> Transfers::upload_through_ring(const DeviceTensor& destination, const TensorRef& source) {
  refuse_repacking(destination.ref, source);
  refuse_overlap(destination.ref);
  std::vector<std::shared_ptr<const cuda::Event>> events;
  if (element_count(source.layout.shape) == 0) return std::make_shared<Pending>(runtime_.driver(), std::move(events));
  reap();
  const cuda::ContextScope scope = enter(destination);
  refuse_stream(runtime_.functions(), destination);
  const std::shared_ptr<HostRing> through = ring(scope, cuda::Direction::to_device);
  const auto chunks = ring_chunks(destination.ref.layout, source.layout,
                                  part_nbytes(destination.ref.layout, through->slot_nbytes(scope)), RingWay::to_device);
  if (!chunks) throw too_sparse(destination.ref);
  RingCopies copies(runtime_, scope, retired_, destination, RingWay::to_device);
  std::shared_ptr<const cuda::Event> last;
  for (const RingChunk& chunk : *chunks) {
    RingPiece piece = through->take(scope, static_cast<std::size_t>(chunk.landing_nbytes));
    copy(in_piece(destination.ref, chunk, piece), in_host(source, chunk));
    last = copies.enqueue(chunk, piece);
    piece.used_until(last);
  }
  events.push_back(std::move(last));
  return std::make_shared<Pending>(runtime_.driver(), std::move(events));
}

}  // namespace ferry
