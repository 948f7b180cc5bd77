#include "bind/pinned_place.hpp"

#include <atomic>
#include <utility>

#include "bind/device_path.hpp"
#include "bind/pinned_pools.hpp"
#include "cuda/fork_generation.hpp"
#include "cuda/host_range.hpp"

namespace ferry::bind {

HostBytes host_bytes(const TensorRef& ref) {
  const ByteSpan bytes = span(ref.layout);
  if (bytes.high <= bytes.low) return {};
  return {ref.data + bytes.low, static_cast<std::size_t>(bytes.high - bytes.low)};
}

HostPins& host_pins() {
  struct Instance {
    HostPins pins;
    std::uint32_t generation = cuda::fork_generation();
  };
  static std::atomic<Instance*> made{nullptr};  // never freed, since arrays may die later than any static
  Instance* known = made.load(std::memory_order_acquire);
  if (known != nullptr && known->generation == cuda::fork_generation()) return known->pins;
  auto fresh = std::make_unique<Instance>();
  if (made.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) known = fresh.release();
  return known->pins;
}

PinnedPlace own_pinned_place(const HostBytes& bytes) {
  PinnedPlace place;
  if (bytes.nbytes == 0 || transfers_if_used() == nullptr) return place;
  for (const auto& pool : used_pools()) {
    place.lease = pool->find(bytes.begin, bytes.nbytes);
    if (place.lease != nullptr) return place;
  }
  place.range = host_pins().find(bytes.begin, bytes.nbytes);
  return place;
}

PinnedPlace pinned_place(const HostBytes& bytes, int device) {
  PinnedPlace place = own_pinned_place(bytes);
  if (place || bytes.nbytes == 0) return place;
  const cuda::ContextScope scope = transfers().runtime().enter(device);
  place.by_others = cuda::classify_host_range(scope, bytes.begin, bytes.nbytes) == cuda::HostRange::pinned;
  return place;
}

}  // namespace ferry::bind
