#include "host/kernels/kernels.hpp"

#include <cstdlib>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ferry {

namespace portable {
extern const Kernels table;
}
#if defined(FERRY_X86_LEVELS)
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

KernelLevels kernel_levels() noexcept {
  KernelLevels found;
  found.levels[static_cast<std::size_t>(found.count++)] = &portable::table;
#if defined(FERRY_X86_LEVELS)
  // Also asks whether the system keeps the wide registers.
  if (__builtin_cpu_supports("x86-64-v3")) found.levels[static_cast<std::size_t>(found.count++)] = &avx2::table;
  if (__builtin_cpu_supports("x86-64-v4")) found.levels[static_cast<std::size_t>(found.count++)] = &avx512::table;
#endif
  return found;
}

const Kernels& kernels() noexcept {
  static const Kernels& chosen = []() -> const Kernels& {
    const KernelLevels found = kernel_levels();
    const char* name = std::getenv("TENSORFERRY_CPU_LEVEL");
    const auto best = static_cast<std::size_t>(found.count - 1);
    for (std::size_t i = 0; name != nullptr && i < best; ++i) {
      if (found.levels[i]->level == name) return *found.levels[i];
    }
    return *found.levels[best];
  }();
  return chosen;
}

void stream_fence() noexcept {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace ferry
