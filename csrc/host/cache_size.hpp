// The size of the cache that all cores share.
#pragma once

#include <cstdint>

namespace ferry {

// In bytes; 16 MiB where the system does not tell.
[[nodiscard]] std::int64_t last_cache_nbytes() noexcept;

}  // namespace ferry
