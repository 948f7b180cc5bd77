#include "transfer/replay_ring.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/piece_list.hpp"
#include "transfer/captured.hpp"
#include "transfer/refusals.hpp"

namespace ferry {
namespace {

constexpr std::size_t alignment = 64;  // a line of the host's caches, and more than any payload needs

constexpr std::size_t rounded(std::size_t nbytes) noexcept { return (nbytes + alignment - 1) / alignment * alignment; }

gpu::PieceList list_of(std::span<const Gathered> pieces) {
  gpu::PieceList list;
  for (const Gathered& piece : pieces) {
    const Layout& layout = piece.source.ref.layout;
    const auto elements = static_cast<std::uint64_t>(element_count(layout.shape).value_or(0));
    list.add(device_address(piece.source.ref.data), piece.offset,
             elements * static_cast<std::uint64_t>(layout.itemsize));
  }
  return list;
}

}  // namespace

// What the graph's kernel touches besides the tensors.
struct ReplayRing::Memory {
  [[nodiscard]] ReplaySlots slots(std::uint64_t count) const noexcept {
    return {lease->data(), lease->data() + payloads, pitch, count};
  }

  std::shared_ptr<void> counter_owner;
  std::shared_ptr<PinnedLease> lease;
  std::size_t pitch = 0;
  gpu::Address counter = 0;
  gpu::Address mapped = 0;  // the device's address of the lease

  // In the lease: headers, payloads, and the table of pieces.
  std::size_t payloads = 0;
  std::size_t table = 0;
};

// Lives as long as the graph can be launched.
struct ReplayRing::InGraph {
  std::shared_ptr<Memory> memory;
};

ReplayRing::ReplayRing(Transfers& transfers, const ReplayShape& shape, std::shared_ptr<Memory> memory) noexcept
    : transfers_(transfers), shape_(shape), memory_(std::move(memory)), reader_(memory_->slots(shape.slots)) {}

std::shared_ptr<ReplayRing> ReplayRing::make(Transfers& transfers, const DeviceTensor& counter,
                                             const ReplayShape& shape) {
  const cuda::ContextScope scope = transfers.enter(counter);
  refuse_stream(transfers.runtime().functions(), counter);
  if (transfers.kernels(scope, counter.stream) == nullptr) return nullptr;
  auto memory = std::make_shared<Memory>();
  memory->counter_owner = counter.owner;
  memory->counter = device_address(counter.ref.data);
  memory->pitch = rounded(std::max<std::size_t>(shape.nbytes, 1));
  memory->payloads = rounded(shape.slots * sizeof(gpu::SlotHeader));
  memory->table = memory->payloads + shape.slots * memory->pitch;
  const std::size_t nbytes = memory->table + shape.pieces * sizeof(gpu::Piece);
  memory->lease = transfers.results().lease(scope, nbytes);
  if (!memory->lease || memory->lease->piece_nbytes(memory->lease->data(), nbytes) != nbytes) return nullptr;
  const auto mapped = memory->lease->device_pointer(memory->lease->data());
  if (!mapped) return nullptr;
  memory->mapped = *mapped;
  std::memset(memory->lease->data(), 0, memory->payloads);
  return std::shared_ptr<ReplayRing>(new ReplayRing(transfers, shape, std::move(memory)));
}

void ReplayRing::capture(std::span<const Gathered> pieces) {
  const DeviceTensor& first = pieces.front().source;
  const cuda::Functions& functions = transfers_.runtime().functions();
  const cuda::ContextScope scope = transfers_.enter(first);
  refuse_other_device(functions, first.device);
  const cuda::CUgraph graph = graph_being_captured(functions, first);
  const cuda::Kernels* kernels = transfers_.kernels(scope, first.stream);
  if (kernels == nullptr) throw no_kernel_for(first.ref);
  const gpu::PieceList list = list_of(pieces);
  if (!list.fits_inline()) {
    std::memcpy(memory_->lease->data() + memory_->table, list.pieces().data(), list.table_nbytes());
  }
  const gpu::Slots slots{memory_->counter, memory_->mapped, memory_->mapped + memory_->payloads, memory_->pitch,
                         gpu::wide_divisor_of(shape_.slots)};
  const gpu::Launch launch = gpu::gather_slot_launch(list, slots, memory_->mapped + memory_->table);
  auto in_graph = std::make_shared<InGraph>(InGraph{memory_});
  in_graph_ = in_graph;
  Holds holds{std::move(in_graph)};
  for (const Gathered& piece : pieces) {
    if (piece.source.owner) holds.push_back(piece.source.owner);
  }
  // Before the launch: a graph that replays it must not be without.
  if (graph != nullptr) static_cast<void>(transfers_.graph_holds().retain(functions, graph, std::move(holds)));
  kernels->launch(scope, launch, first.stream);
}

bool ReplayRing::is_graph_gone() noexcept {
  transfers_.graph_holds().reap();
  return in_graph_.expired();
}

}  // namespace ferry
