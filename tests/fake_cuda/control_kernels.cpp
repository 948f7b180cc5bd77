// What tests may set about kernels, by C name.
#include <cstring>
#include <string>

#include "kernel_run.hpp"
#include "world.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace fake;

/// One line for each kernel: name, bytes of arguments, whether it waits at barriers.
EXPORT std::size_t fake_kernels(char* out, std::size_t size) {
  std::vector<std::string> lines;
  for (const KernelCode& code : kernel_codes()) {
    lines.push_back(text(code.name, " ", code.argument_nbytes, " ", code.syncs ? 1 : 0));
  }
  return give_lines(lines, out, size);
}

EXPORT void fake_kernel_seed(std::uint64_t seed) {
  World& w = world();
  Lock lock(w.mutex);
  w.settings.kernel_seed = seed;
}

/// Later launches run only these blocks of their grids.
EXPORT void fake_kernel_blocks(std::uint32_t first, std::uint32_t count) {
  World& w = world();
  Lock lock(w.mutex);
  w.settings.kernel_first_block = first;
  w.settings.kernel_blocks = count;
}

/// Let kernels lose the nth barrier or fence of each thread, or treat stores with release as plain ones; 0 if there is
/// no such mistake. Until the next reset, or "none".
EXPORT int fake_kernel_mistake(const char* what, std::uint64_t nth, std::uint64_t period) {
  World& w = world();
  Lock lock(w.mutex);
  KernelMistakes& mistakes = kernel_mistakes();
  const std::string asked = what;
  if (asked == "barrier") {
    mistakes.lost_barrier = nth;
    mistakes.barriers_period = period;
  } else if (asked == "fence") {
    mistakes.lost_fence = nth;
    mistakes.fences_period = period;
  } else if (asked == "release") {
    mistakes.plain_releases = true;
  } else if (asked == "none") {
    mistakes = {};
  } else {
    return 0;
  }
  return 1;
}
