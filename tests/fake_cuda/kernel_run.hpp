// One launch, carried out: blocks one after the other in any order, the threads of a block by fibers where they may
// meet.
#pragma once

#include <memory>
#include <vector>

#include "engine.hpp"
#include "kernel_table.hpp"

namespace fake {

struct LaunchShape {
  std::uint32_t blocks, threads;
  std::uint32_t first = 0,
                count = ~0U;  ///< only these blocks run: for indices that whole grids would take hours to reach
};

/// Rules of the kernels' order that a test breaks, to see that somebody notices. Counted from 1 in each thread; 0 is
/// none.
struct KernelMistakes {
  std::uint64_t lost_barrier = 0, barriers_period = 0;  ///< this one, and every `period`-th after it
  std::uint64_t lost_fence = 0, fences_period = 0;
  bool plain_releases = false;  ///< a store with release is a plain one
};
KernelMistakes& kernel_mistakes();

/// Runs without the driver's lock, or with it where `runs_under_lock`. One kernel at a time in the process.
std::shared_ptr<Landing> run_kernel(const KernelCode& code, LaunchShape shape, std::vector<unsigned char> arguments,
                                    Device device, u64 seed);

}  // namespace fake
