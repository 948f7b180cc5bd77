// Events behind which nobody's work touches exposed memory any more.
#pragma once

#include <vector>

#include "cuda/event.hpp"
#include "cuda/runtime.hpp"
#include "pinned/pinned_pool.hpp"

namespace ferry {

struct FenceAttempt {
  bool recorded = false;                      // else try later: somebody is capturing, or the driver failed
  std::vector<cuda::Event> events{};          // all of them must be done
  std::vector<cuda::ContextIdentity> lost{};  // contexts that no call works in any more
};

// In every active primary context, and in the others of `seen`, one event for each stream whose work may touch memory
// of ours; contexts of `known_lost` are left out. Looks for a capture right before each record, and records nothing
// more where there is one. Never waits.
[[nodiscard]] FenceAttempt record_fence(cuda::Runtime& runtime, Fence fence,
                                        const std::vector<cuda::ContextIdentity>& seen,
                                        const std::vector<cuda::ContextIdentity>& known_lost) noexcept;

}  // namespace ferry
