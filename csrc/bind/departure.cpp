// How arrays go to a device, for plans: asked for before anything is enqueued.
#include "bind/departure.hpp"

#include "bind/device_path.hpp"
#include "bind/gil.hpp"
#include "bind/pinnable.hpp"
#include "bind/pinned_place.hpp"

namespace ferry::bind {
namespace {

const char* name_of(UploadPath path) noexcept {
  switch (path) {
    case UploadPath::nothing:
      return "nothing";
    case UploadPath::ring:
      return "ring";
    case UploadPath::unpack:
      return "unpack";
    case UploadPath::direct:
      return "direct";
    case UploadPath::direct_unpack:
      return "direct unpack";
    case UploadPath::producer_unpack:
      return "producer's unpack";
  }
  return "";
}

constexpr std::int64_t ring_slots = 4;

// Is it pinned, or will it be when it is sent?
bool is_pinned(const TensorRef& source, int device) {
  const HostBytes bytes = host_bytes(source);
  const Waiting waiting = waiting_to_be_pinned(bytes);
  const GilReleased released(true);
  const bool now = transfers_if_used() == nullptr ? static_cast<bool>(own_pinned_place(bytes))
                                                  : static_cast<bool>(pinned_place(bytes, device));
  return now || (waiting.pool != nullptr && waiting.pool->has_room(waiting.nbytes));
}

}  // namespace

Departure departure_of(const Source& source, DType dtype, const Extents& strides, int device, bool kernels) {
  TensorRef destination;
  destination.dtype = dtype;
  destination.layout = {source.ref.layout.shape, strides, info(dtype).itemsize};
  Transfers* used = transfers_if_used();
  UploadFacts facts = upload_facts(destination, source.ref, used == nullptr ? LinkFigures{} : used->link(device));
  if (facts.nbytes > 0) facts.is_pinned = is_pinned(source.ref, device);
  facts.has_kernels = kernels;
  const UploadLimits limits = upload_limits(used == nullptr ? transfer_limits() : used->limits());
  const UploadPath path = choose_upload(facts, limits);
  Departure departure{name_of(path), 0, facts.dtype, facts.nbytes};
  const bool unpacks = path == UploadPath::unpack;
  if (unpacks || path == UploadPath::direct_unpack) {
    const std::int64_t slot = unpacks ? limits.ring_nbytes / ring_slots : 0;
    departure.launches = upload_parts(destination, source.ref, facts.dtype, limits, slot).size();
  }
  return departure;
}

}  // namespace ferry::bind
