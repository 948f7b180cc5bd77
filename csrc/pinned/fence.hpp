// Events behind which nobody's work touches exposed memory any more.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/event.hpp"
#include "cuda/runtime.hpp"
#include "pinned/pinned_pool.hpp"

namespace ferry {

struct FenceAttempt {
  bool recorded = false;  // else try later: somebody is capturing, streams are not known, or the driver failed
  std::vector<cuda::Event> events{};          // all of them must be done
  std::vector<cuda::ContextIdentity> lost{};  // contexts that no call works in any more
};

// In every active primary context, and in the others of `seen`, one event for each stream whose work may touch memory
// of ours and came back until the tick `last_return` (ForeignStreams); contexts of `known_lost` are left out. Looks for
// a capture right before each record, and records nothing more where there is one, nor before it is known in which
// streams others work. Never waits.
[[nodiscard]] FenceAttempt record_fence(cuda::Runtime& runtime, Fence fence, std::uint64_t last_return,
                                        const std::vector<cuda::ContextIdentity>& seen,
                                        const std::vector<cuda::ContextIdentity>& known_lost) noexcept;

}  // namespace ferry
