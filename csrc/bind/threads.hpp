// How many threads a copy may use.
#pragma once

#include <cstdint>

namespace ferry::bind {

// torch's number where torch is imported, else the processors this process may run on; 1 for less than a few hundred
// KiB, about which nobody is asked. Needs the GIL.
[[nodiscard]] int threads_for(std::int64_t nbytes);

}  // namespace ferry::bind
