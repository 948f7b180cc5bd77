// How tensors arrive, for descriptions and plans: asked for before anything is enqueued.
#include <algorithm>

#include "bind/device_path.hpp"
#include "bind/fetch.hpp"
#include "bind/gil.hpp"
#include "bind/pinnable.hpp"
#include "bind/pinned_place.hpp"
#include "cuda/kernel_image.hpp"
#include "transfer/host_ring.hpp"
#include "transfer/path_choice.hpp"
#include "transfer/ring_packing.hpp"

namespace ferry::bind {
namespace {

const char* name_of(CopyPath path) noexcept {
  switch (path) {
    case CopyPath::nothing:
      return "nothing";
    case CopyPath::direct_store:
      return "store";
    case CopyPath::block:
      return "block";
    case CopyPath::rows:
      return "rows";
    case CopyPath::pieces:
      return "pieces";
    case CopyPath::pack:
      return "pack";
    case CopyPath::chunked_pack:
      return "chunked pack";
    case CopyPath::producer_pack:
      return "producer's pack";
    case CopyPath::ring:
      return "ring";
  }
  return "";
}

constexpr std::size_t parts_of_staging = 4;

bool are_there_to_load() {
  static const bool known = cuda::kernel_image().data != nullptr;
  return known;
}

}  // namespace

ArrivalPlan plan_arrival(const TensorRef& lying, const KernelWish& wish, bool producer_packs, bool kernels) {
  ArrivalPlan plan{{}, wish, kernels};
  if (kernels) {
    if (auto arrival = arrival_by_kernel(lying.layout, wish)) {
      plan.arrival = *arrival;
      return plan;
    }
  }
  plan.arrival = arrival_of(lying.layout, producer_packs, wish.host_waits);
  plan.arrival.from = plan.arrival.to = wish.from;
  return plan;
}

bool is_run(const Arrival& arrival) {
  if (arrival.as_block) return true;
  const Layout& moved = arrival.moved;
  const auto itemsize = std::int64_t{info(arrival.to).itemsize};
  return arrival.by_kernel && moved.strides == packed_strides(moved, Order::keep, moved.itemsize) &&
         arrival.landing_strides == packed_strides(moved, Order::keep, itemsize);
}

bool kernels_there(int device, bool load) {
  if (!transfer_limits().kernels) return false;
  const GilReleased released(true);
  Transfers* used = load ? &transfers() : transfers_if_used();
  if (used == nullptr) return are_there_to_load();
  const cuda::ContextScope scope = used->runtime().enter(device);
  if (load) return used->runtime().kernels(scope) != nullptr;
  const cuda::KernelStatus status = used->runtime().kernel_status(scope.context());
  if (status.state == cuda::KernelState::not_loaded_yet) return are_there_to_load();
  return status.state == cuda::KernelState::ready;
}

WayOverTheLink way_over_the_link(const ArrivalPlan& plan, const Source& lying, const Source* destination, bool ring,
                                 int device, const std::string& snapshot) {
  Transfers* used = transfers_if_used();
  const LinkFigures link = used == nullptr ? LinkFigures{} : used->link(device);
  const TransferLimits limits = transfer_limits();
  const Arrival& arrival = plan.arrival;
  TensorRef from = lying.ref;
  from.data = nullptr;
  TensorRef to;
  if (destination != nullptr) {
    to = destination->ref;
    from.dtype = plan.wish.from != plan.wish.to || ring ? plan.wish.from : to.dtype;
  } else {
    from.layout = arrival.moved;
    from.dtype = arrival.as_block ? DType::uint8 : arrival.from;
    to.dtype = arrival.as_block ? DType::uint8 : arrival.to;
    to.layout = {arrival.moved.shape, arrival.landing_strides,
                 arrival.by_kernel ? std::int64_t{info(arrival.to).itemsize} : arrival.moved.itemsize};
  }
  if (arrival.packs) return {name_of(ring ? CopyPath::ring : CopyPath::producer_pack), 0};
  const std::size_t part = limits.staging_nbytes / parts_of_staging;
  if (ring) {
    const auto packing = plan.kernels ? ring_packing(from, to, link) : std::nullopt;
    const std::size_t most = std::min(part, limits.ring_nbytes / HostRing::slot_count);
    return {name_of(CopyPath::ring), packing ? packed_parts(from, to, packing->dtype, most) : 0};
  }
  PathFacts facts = path_facts(from, to, link);
  if (destination != nullptr) {
    const HostBytes bytes = host_bytes(to);
    const bool waits = waiting_to_be_pinned(bytes).pool != nullptr;  // it is pinned as a whole at its first use
    const GilReleased released(true);
    const bool mapped = waits || (used != nullptr && pinned_place(bytes, device).lease);
    facts.destination = mapped ? HostMemory::mapped : HostMemory::pinned;
  }
  if (snapshot == "always") facts.destination = HostMemory::pinned;
  facts.host_waits = snapshot == "never";
  facts.has_kernels = plan.kernels;
  facts.staging_nbytes = static_cast<std::int64_t>(std::min(limits.largest_snapshot_nbytes, limits.staging_nbytes));
  const CopyPath path = choose_path(facts, link).path;
  const bool launches = path == CopyPath::direct_store || path == CopyPath::pack;
  return {name_of(path), path == CopyPath::chunked_pack ? packed_parts(from, to, to.dtype, part) : launches ? 1U : 0U};
}

}  // namespace ferry::bind
