// Many small tensors by one kernel and one copy.
#include <algorithm>
#include <utility>

#include "kernels/piece_list.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/host_target.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/refusals.hpp"
#include "transfer/stream_work.hpp"
#include "transfer/transfers.hpp"

namespace ferry {
namespace {

std::uint64_t elements_of(const Gathered& piece) {
  return static_cast<std::uint64_t>(element_count(piece.source.ref.layout.shape).value_or(0));
}

gpu::PieceList list_of(std::span<const Gathered> pieces, std::size_t begin = 0) {
  gpu::PieceList list;
  for (const Gathered& piece : pieces) {
    const TensorRef& ref = piece.source.ref;
    const std::uint64_t elements = elements_of(piece);
    const bool casts = ref.dtype != piece.dtype;
    const auto type = [](DType dtype) { return static_cast<gpu::ElementType>(dtype); };
    list.add(device_address(ref.data), piece.offset - begin,
             casts ? elements : elements * static_cast<std::uint64_t>(ref.layout.itemsize),
             casts ? gpu::cast_between(type(piece.dtype), type(ref.dtype)) : gpu::no_cast);
  }
  return list;
}

Holds owners_of(std::span<const Gathered> pieces) {
  Holds owners;
  for (const Gathered& piece : pieces) owners.push_back(piece.source.owner);
  return owners;
}

// Where the kernel reads its pieces, if they do not fit into its arguments. Null where there is no memory.
struct Table {
  std::shared_ptr<PinnedLease> lease;
  gpu::Address address = 0;
};

std::optional<Table> table_for(Transfers& transfers, const cuda::ContextScope& scope, const gpu::PieceList& list) {
  if (list.fits_inline()) return Table{};
  const auto nbytes = static_cast<std::size_t>(list.table_nbytes());
  auto lease = transfers.results().lease(scope, nbytes);
  if (!lease || lease->piece_nbytes(lease->data(), nbytes) != nbytes) return std::nullopt;
  const auto address = lease->device_pointer(lease->data());
  if (!address) return std::nullopt;
  std::copy_n(reinterpret_cast<const std::byte*>(list.pieces().data()), nbytes, lease->data());
  return Table{std::move(lease), *address};
}

std::vector<CopyOut> copies_of(std::span<const GatherBlock> blocks) {
  std::vector<CopyOut> copies;
  for (const GatherBlock& block : blocks) {
    HostTarget target;
    target.ref.data = block.lease->data();
    target.lease = block.lease;
    const Move move{static_cast<std::int64_t>(block.offset), 0, static_cast<std::int64_t>(block.nbytes), 1, 0, 0};
    copies.push_back({reinterpret_cast<std::uintptr_t>(target.ref.data),
                      inside_registrations({move}, HostEnd::destination, target), hold_of(target)});
  }
  return copies;
}

}  // namespace

DownloadFacts Transfers::Batch::gather(std::span<const Gathered> pieces, std::span<const GatherBlock> blocks,
                                       Snapshot snapshot, BackPressure pressure) {
  if (pieces.empty()) return {};
  if (!std::exchange(reaped_, true)) transfers_.reap();
  if (auto staged = gather_staged(pieces, blocks, snapshot, pressure)) return *staged;
  return gather_stored(pieces, blocks);
}

std::optional<DownloadFacts> Transfers::Batch::gather_staged(std::span<const Gathered> pieces,
                                                             std::span<const GatherBlock> blocks, Snapshot snapshot,
                                                             BackPressure pressure) {
  const DeviceTensor& first = pieces.front().source;
  const std::size_t nbytes = blocks.back().offset + blocks.back().nbytes;
  const bool in_stream = snapshot == Snapshot::never;
  if (nbytes > transfers_.limits().staging_nbytes) return std::nullopt;
  const gpu::PieceList list = list_of(pieces);
  std::optional<Table> table;
  {
    const cuda::ContextScope scope = transfers_.enter(first);
    table = table_for(transfers_, scope, list);
  }
  if (!table) return std::nullopt;
  const auto try_once = [&] {
    cuda::Runtime& runtime = transfers_.runtime();
    const cuda::ContextScope scope = transfers_.enter(first);
    refuse_stream(runtime.functions(), first);
    Attempt attempt{std::nullopt, transfers_.staging(scope)};
    if (!attempt.staging) return attempt;
    const cuda::Kernels* kernels = transfers_.kernels(scope, first.stream);
    if (kernels == nullptr) throw no_kernel_for(first.ref);
    const cuda::CUstream user =
        in_stream ? first.stream : runtime.copy_stream(scope, cuda::Direction::to_host, first.stream);
    auto slot = attempt.staging->take(nbytes, user, transfers_.limits().most_in_flight);
    if (!slot) return attempt;
    const gpu::Launch launch =
        gpu::gather_launch(list, slot->address(), table->address,
                           gpu::memory_bound(static_cast<std::uint32_t>(kernels->multiprocessors())));
    std::vector<CopyOut> copies = copies_of(blocks);
    attempt.facts = DownloadFacts{0, 1, !in_stream, in_stream};
    for (const CopyOut& copy : copies) attempt.facts->driver_copies += copy.moves.size();
    enqueue_on(scope, first, [&](StreamWork& work) {
      attempt.staging->order_after_memory(work.stream());
      work.pack(scope, {*kernels, launch}, owners_of(pieces), {table->lease}, std::move(slot), std::move(copies),
                in_stream);
    });
    return attempt;
  };
  return with_staging(first, nbytes, snapshot == Snapshot::always, pressure, try_once);
}

// Over the link, by a kernel for each block, or more where its arguments ask for it.
DownloadFacts Transfers::Batch::gather_stored(std::span<const Gathered> pieces, std::span<const GatherBlock> blocks) {
  const DeviceTensor& first = pieces.front().source;
  const cuda::ContextScope scope = transfers_.enter(first);
  refuse_stream(transfers_.runtime().functions(), first);
  const cuda::Kernels* kernels = transfers_.kernels(scope, first.stream);
  DownloadFacts facts{0, 0, false, true};
  for (const GatherBlock& block : blocks) {
    const auto address = block.lease->device_pointer(block.lease->data());
    if (kernels == nullptr || !address) throw no_kernel_for(first.ref);
    std::vector<Gathered> inside;
    for (const Gathered& piece : pieces) {
      if (piece.offset >= block.offset && piece.offset < block.offset + block.nbytes) inside.push_back(piece);
    }
    for (std::span<const Gathered> left = inside; !left.empty();) {
      const auto some = left.first(std::min<std::size_t>(left.size(), gpu::max_inline_pieces));
      left = left.subspan(some.size());
      const gpu::Launch launch = gpu::gather_launch(list_of(some, block.offset), *address, 0, gpu::link_bound);
      enqueue_on(scope, first,
                 [&](StreamWork& work) { work.store(scope, {*kernels, launch}, owners_of(some), {block.lease}); });
      ++facts.launches;
    }
  }
  return facts;
}

}  // namespace ferry
