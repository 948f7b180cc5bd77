// What a launch will touch, as far as its arguments tell: for questions about pending work. A kernel's own accesses are
// judged when it runs, so nothing escapes; but a free of what is still pending is better named where it happens.
#pragma once

#include <vector>

#include "kernel_table.hpp"
#include "world.hpp"

namespace fake {

/// Memory that any word of the arguments points into, what a table of pieces names, and the kernel's library.
std::vector<Access> accesses_of(World& w, const KernelCode& code, const std::vector<unsigned char>& arguments,
                                u64 library);

}  // namespace fake
