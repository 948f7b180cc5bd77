#include "cuda/foreign_streams.hpp"

#include <algorithm>

namespace ferry::cuda {

void ForeignStreams::add(int device, const ContextIdentity& primary, const std::vector<CUstream>& streams) {
  const std::lock_guard lock(mutex_);
  Known& known = known_[device];
  if (known.primary != primary) known = {primary, {}};
  for (const CUstream stream : streams) {
    if (std::find(known.streams.begin(), known.streams.end(), stream) == known.streams.end()) {
      known.streams.push_back(stream);
    }
  }
  wanted_.store(false);
}

std::vector<CUstream> ForeignStreams::of(int device, const Functions& functions) const {
  Known known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(device);
    if (found == known_.end()) return {};
    known = found->second;
  }
  return is_alive(functions, known.primary) ? known.streams : std::vector<CUstream>{};
}

void ForeignStreams::had_not_begun(std::uint64_t tick) noexcept {
  std::uint64_t before = not_begun_.load();
  while (before < tick && !not_begun_.compare_exchange_weak(before, tick)) {
  }
}

bool ForeignStreams::cover(int device, std::uint64_t tick) noexcept {
  if (!must_be_known_.load() || not_begun_.load() > tick) return true;
  {
    const std::lock_guard lock(mutex_);
    // After a reset, too: what made them cannot work on that device any more.
    if (known_.contains(device)) return true;
  }
  wanted_.store(true);
  return false;
}

}  // namespace ferry::cuda
