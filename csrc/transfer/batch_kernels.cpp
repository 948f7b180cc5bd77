// Downloads that a kernel of ours packs, casts or stores.
#include <algorithm>
#include <limits>
#include <utility>

#include "core/mutation.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/host_target.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/pack_chunks.hpp"
#include "transfer/pack_ring.hpp"
#include "transfer/refusals.hpp"
#include "transfer/stream_work.hpp"
#include "transfer/transfers.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_moves = 1024;
constexpr std::size_t ring_slots = 4;  // that parts of a large tensor are packed into

gpu::BlockLimit in_device_memory(const cuda::Kernels& kernels) {
  return gpu::memory_bound(static_cast<std::uint32_t>(kernels.multiprocessors()));
}

PackChunk whole(const TensorRef& source, const TensorRef& target) {
  return pack_chunks(source.layout, target.layout, target.layout.itemsize, std::numeric_limits<std::int64_t>::max(),
                     Repeated::each)
      .front();
}

// From the packed bytes to the target's data pointer.
std::optional<std::vector<Move>> moves_out(const PackChunk& chunk) {
  auto moves = moves_between(chunk.landing, chunk.host, most_moves);
  if (!moves) return std::nullopt;
  for (Move& move : *moves) move.destination_offset += chunk.host_offset;
  return moves;
}

std::size_t slot_nbytes(std::int64_t packed_nbytes) {
  const auto nbytes = static_cast<std::size_t>(packed_nbytes);
  return mutated(Mutation::short_staging_slot) ? std::max<std::size_t>(nbytes / 4, 1) : nbytes;
}

}  // namespace

// Nothing where copies alone do it, or where there are no kernels.
std::optional<DownloadFacts> Transfers::Batch::download_by_kernel(const DeviceTensor& source, const HostTarget& target,
                                                                  Snapshot snapshot, BackPressure pressure) {
  if (!transfers_.uses_kernels_.load(std::memory_order_relaxed)) return std::nullopt;
  const LinkFigures link = transfers_.link(source.device);
  PathFacts facts = path_facts(source.ref, target.ref, link);
  facts.host_waits = snapshot == Snapshot::never;
  const std::int64_t most_stored = std::max(link.stores_of_blocks, link.stores_when_not);
  if (facts.is_block && facts.nbytes > most_stored) return std::nullopt;  // whatever else there is
  {
    const cuda::ContextScope scope = transfers_.enter(source);
    refuse_stream(transfers_.runtime().functions(), source);
    facts.has_kernels = transfers_.kernels(scope, source.stream) != nullptr;
    if (!facts.has_kernels) return std::nullopt;
    const bool may_store = snapshot == Snapshot::never || snapshot == Snapshot::automatic;
    facts.destination = may_store && mapped_address(target) ? HostMemory::mapped : HostMemory::pinned;
  }
  const TransferLimits& limits = transfers_.limits();
  facts.staging_nbytes = static_cast<std::int64_t>(std::min(limits.largest_snapshot_nbytes, limits.staging_nbytes));
  switch (choose_path(facts, link).path) {
    case CopyPath::direct_store:
      return store(source, target);
    case CopyPath::pack:
      if (auto packed = pack(source, target, snapshot, pressure)) return packed;
      break;
    case CopyPath::chunked_pack:
      if (snapshot == Snapshot::always) {
        throw no_snapshot_of(target.ref, static_cast<std::size_t>(facts.nbytes),
                             static_cast<std::size_t>(facts.staging_nbytes));
      }
      if (auto packed = pack_in_chunks(source, target, pressure)) return packed;
      break;
    default:
      return std::nullopt;
  }
  // There is no staging: the kernel stores over the link, slowly.
  return store(source, target);
}

std::optional<DownloadFacts> Transfers::Batch::store(const DeviceTensor& source, const HostTarget& target) {
  const cuda::ContextScope scope = transfers_.enter(source);
  const cuda::Kernels* kernels = transfers_.kernels(scope, source.stream);
  const auto address = mapped_address(target);
  if (kernels == nullptr || !address) return std::nullopt;
  const KernelEnd from{device_address(source.ref.data), source.ref.layout, source.ref.dtype};
  const auto launch =
      gpu::launch_for(kernel_copy({*address, target.ref.layout, target.ref.dtype}, from), gpu::link_bound);
  if (!launch) return std::nullopt;
  enqueue_on(scope, source, [&](StreamWork& work) {
    work.store(scope, {*kernels, *launch}, {source.owner}, {target.lease, target.owner});
  });
  return DownloadFacts{0, 1, false, true};
}

std::optional<DownloadFacts> Transfers::Batch::pack(const DeviceTensor& source, const HostTarget& target,
                                                    Snapshot snapshot, BackPressure pressure) {
  const PackChunk chunk = whole(source.ref, target.ref);
  const auto moves = moves_out(chunk);
  if (!moves) return std::nullopt;
  const bool in_stream = snapshot == Snapshot::never;
  const auto nbytes = static_cast<std::size_t>(chunk.nbytes);
  const auto try_once = [&] {
    cuda::Runtime& runtime = transfers_.runtime();
    const cuda::ContextScope scope = transfers_.enter(source);
    refuse_stream(runtime.functions(), source);
    Attempt attempt{std::nullopt, transfers_.staging(scope)};
    const cuda::Kernels* kernels = transfers_.kernels(scope, source.stream);
    if (!attempt.staging) return attempt;
    if (kernels == nullptr) throw no_kernel_for(source.ref);
    const cuda::CUstream user =
        in_stream ? source.stream : runtime.copy_stream(scope, cuda::Direction::to_host, source.stream);
    auto slot = attempt.staging->take(slot_nbytes(chunk.nbytes), user, transfers_.limits().most_in_flight);
    if (!slot) return attempt;
    const KernelEnd from{device_address(source.ref.data + chunk.device_offset), chunk.device, source.ref.dtype};
    const auto launch = gpu::launch_for(kernel_copy({slot->address(), chunk.packed, target.ref.dtype}, from),
                                        in_device_memory(*kernels));
    if (!launch) throw no_kernel_for(source.ref);
    std::vector<Move> pieces = inside_registrations(*moves, HostEnd::destination, target);
    attempt.facts = DownloadFacts{pieces.size(), 1, !in_stream, in_stream};
    const CopyOut copy{reinterpret_cast<std::uintptr_t>(target.ref.data), std::move(pieces), hold_of(target)};
    enqueue_on(scope, source, [&](StreamWork& work) {
      attempt.staging->order_after_memory(work.stream());
      work.pack(scope, {*kernels, *launch}, {source.owner}, {}, std::move(slot), {copy}, in_stream);
    });
    return attempt;
  };
  return with_staging(source, nbytes, snapshot == Snapshot::always, pressure, try_once);
}

std::optional<DownloadFacts> Transfers::Batch::pack_in_chunks(const DeviceTensor& source, const HostTarget& target,
                                                              BackPressure pressure) {
  const std::size_t part = transfers_.limits().staging_nbytes / ring_slots;
  const auto chunks = pack_chunks(source.ref.layout, target.ref.layout, target.ref.layout.itemsize,
                                  static_cast<std::int64_t>(part), Repeated::each);
  const auto try_once = [&] {
    cuda::Runtime& runtime = transfers_.runtime();
    const cuda::ContextScope scope = transfers_.enter(source);
    refuse_stream(runtime.functions(), source);
    Attempt attempt{std::nullopt, transfers_.staging(scope)};
    const cuda::Kernels* kernels = transfers_.kernels(scope, source.stream);
    if (!attempt.staging) return attempt;
    if (kernels == nullptr) throw no_kernel_for(source.ref);
    auto slots = attempt.staging->take_some(part, ring_slots, source.stream, transfers_.limits().most_in_flight);
    if (slots.empty()) return attempt;
    attempt.staging->order_after_memory(source.stream);
    PackRing ring(runtime, transfers_.retired(), scope, *kernels, source, std::move(slots));
    ring.hold(target.lease);
    ring.hold(target.owner);
    attempt.facts = DownloadFacts{0, 0, false, true};
    for (const PackChunk& chunk : chunks) {
      const auto moves = moves_out(chunk);
      if (!moves) throw too_many_pieces(target.ref, most_moves);
      const std::vector<Move> pieces = inside_registrations(*moves, HostEnd::destination, target);
      static_cast<void>(
          ring.enqueue(chunk, target.ref.dtype, reinterpret_cast<std::uintptr_t>(target.ref.data), pieces));
      attempt.facts->driver_copies += pieces.size();
      ++attempt.facts->launches;
    }
    events_.push_back(ring.last_copied());
    return attempt;
  };
  return with_staging(source, part, false, pressure, try_once);
}

}  // namespace ferry
