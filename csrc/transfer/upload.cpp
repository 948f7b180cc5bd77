// From host memory to devices, by the way that is chosen for each tensor.
#include <algorithm>
#include <utility>

#include "core/mutation.hpp"
#include "host/copy.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/event_wait.hpp"
#include "transfer/host_ring.hpp"
#include "transfer/host_target.hpp"
#include "transfer/pack_chunks.hpp"
#include "transfer/refusals.hpp"
#include "transfer/transfers.hpp"
#include "transfer/unpack_ring.hpp"

namespace ferry {
namespace {

constexpr std::size_t ring_slots = 4;
constexpr int most_waits_for_staging = 64;  // some of it may be lost for good

// Waits until something is free. Empty where nobody knows when that will be.
std::vector<std::shared_ptr<StagingSlot>> take_slots(Transfers& transfers, DeviceStaging& staging, std::size_t nbytes,
                                                     std::size_t count, cuda::CUstream stream) {
  const std::size_t most = transfers.limits().most_in_flight;
  for (int waits = 0; waits < most_waits_for_staging; ++waits) {
    auto slots = staging.take_some(nbytes, count, stream, most);
    if (!slots.empty()) return slots;
    if (waits > 0) {
      const auto oldest = staging.oldest();
      if (!oldest) break;
      wait_for(transfers.runtime().functions(), *oldest);
    }
    transfers.reap();
  }
  return {};
}

std::uintptr_t address_of(const std::byte* data) { return reinterpret_cast<std::uintptr_t>(data); }

// The host casts, unless a kernel does, and packs.
void pack_into(const RingPiece& piece, const TensorRef& destination, DType dtype, const TensorRef& source,
               const UnpackChunk& chunk) {
  TensorRef packed = destination;
  packed.data = piece.data();
  packed.dtype = dtype;
  packed.layout = chunk.packed;
  TensorRef part = source;
  part.data += chunk.host_offset;
  part.layout = chunk.host;
  copy(packed, part);
}

// Throws Error; the piece is marked, or given up.
void enqueue_piece(UnpackRing& ring, const UnpackChunk& chunk, DType dtype, RingPiece& piece) {
  const std::vector<Move> moves = inside_registrations(
      {{0, 0, chunk.nbytes, 1, 0, 0}}, HostEnd::source, piece.data(),
      [&piece](const std::byte* data, std::size_t nbytes) { return piece.piece_nbytes(data, nbytes); });
  const auto before = ring.last_copied();
  piece.given_to_device();
  try {
    ring.enqueue(chunk, dtype, address_of(piece.data()), moves);
  } catch (...) {
    if (ring.is_lost()) throw;
    if (ring.last_copied() == before) {
      piece.done_with();
    } else {
      piece.used_until(ring.last_copied());
    }
    throw;
  }
  piece.used_until(ring.last_copied());
}

// All of it is one run of host memory in the order of the parts.
void enqueue_run(UnpackRing& ring, const UnpackChunk& chunk, DType dtype, const HostTarget& source) {
  std::vector<Move> moves =
      inside_registrations({{chunk.host_offset, 0, chunk.nbytes, 1, 0, 0}}, HostEnd::source, source);
  ring.enqueue(chunk, dtype, address_of(source.ref.data), moves);
}

}  // namespace

UploadLimits upload_limits(const TransferLimits& limits) {
  return {static_cast<std::int64_t>(limits.ring_nbytes), static_cast<std::int64_t>(limits.staging_nbytes),
          static_cast<std::int64_t>(limits.unpacks_from), static_cast<std::int64_t>(limits.waits_from)};
}

std::shared_ptr<Pending> Transfers::upload(const DeviceTensor& destination, const HostTarget& source,
                                           HostMemory where) {
  refuse_repacking(destination.ref, source.ref);
  refuse_overlap(destination.ref);
  UploadFacts facts = upload_facts(destination.ref, source.ref, link(destination.device));
  facts.is_pinned = where != HostMemory::ordinary;
  const UploadLimits limits = upload_limits(limits_);
  const UploadPath without = choose_upload(facts, limits);
  facts.has_kernels = true;
  UploadPath path = choose_upload(facts, limits);
  if (path != without && !has_kernels_and_staging(destination)) path = without;
  switch (path) {
    case UploadPath::direct: {
      Batch batch(*this);
      batch.upload_pinned(destination, source);
      auto pending = batch.close();
      if (!mutated(Mutation::leave_source_early)) pending->wait();
      return pending;
    }
    case UploadPath::unpack:
    case UploadPath::direct_unpack:
      if (auto pending = upload_unpacked(destination, source, facts.dtype, path)) return pending;
      if (without == UploadPath::producer_unpack) return nullptr;
      break;
    case UploadPath::producer_unpack:
      return nullptr;
    default:
      break;
  }
  return upload_through_ring(destination, source.ref);
}

std::shared_ptr<Pending> Transfers::upload_unpacked(const DeviceTensor& destination, const HostTarget& source,
                                                    DType dtype, UploadPath path) {
  const bool directly = path == UploadPath::direct_unpack;
  reap();
  const cuda::ContextScope scope = enter(destination);
  refuse_stream(runtime_.functions(), destination);
  const cuda::Kernels* kernels = this->kernels(scope, destination.stream);
  const std::shared_ptr<DeviceStaging> staging = this->staging(scope);
  if (kernels == nullptr || !staging) return nullptr;
  const std::shared_ptr<HostRing> through = directly ? nullptr : ring(scope, cuda::Direction::to_device);
  const auto chunks = upload_parts(destination.ref, source.ref, dtype, upload_limits(limits_),
                                   through ? static_cast<std::int64_t>(through->slot_nbytes(scope)) : 0);
  const auto largest = std::max_element(chunks.begin(), chunks.end(),
                                        [](const UnpackChunk& a, const UnpackChunk& b) { return a.nbytes < b.nbytes; });
  const cuda::CUstream stream = runtime_.copy_stream(scope, cuda::Direction::to_device, destination.stream);
  auto slots = take_slots(*this, *staging, static_cast<std::size_t>(largest->nbytes),
                          std::min(chunks.size(), ring_slots), stream);
  if (slots.empty()) return nullptr;
  staging->order_after_memory(stream);
  UnpackRing unpacking(runtime_, retired_, scope, *kernels, destination, std::move(slots), stream);
  if (directly) {
    unpacking.hold(source.lease);
    unpacking.hold(source.owner);
  }
  for (const UnpackChunk& chunk : chunks) {
    if (directly) {
      enqueue_run(unpacking, chunk, dtype, source);
      continue;
    }
    RingPiece piece = through->take(scope, static_cast<std::size_t>(chunk.nbytes));
    pack_into(piece, destination.ref, dtype, source.ref, chunk);
    enqueue_piece(unpacking, chunk, dtype, piece);
  }
  if (directly && !mutated(Mutation::leave_source_early)) {
    wait_for(runtime_.functions(), *unpacking.last_copied());
  }
  return std::make_shared<Pending>(runtime_.driver(),
                                   std::vector<std::shared_ptr<const cuda::Event>>{unpacking.last_unpacked()});
}

}  // namespace ferry
