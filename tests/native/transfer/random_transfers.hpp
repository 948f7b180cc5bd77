// One random story of transfers, told by a seed.
#pragma once

#include <cstdint>
#include <string>

namespace ferry::test {

// Several transfers both ways between random layouts, several streams and two devices; sources are changed and freed
// right after the call. What went wrong; nothing when all is well. `order` tells orders of the device's work apart.
[[nodiscard]] std::string random_transfers(const char* schedule, std::uint32_t seed, std::uint64_t* order = nullptr);

}  // namespace ferry::test
