// Tells a forked child from its parent.
#pragma once

#include <cstdint>

namespace ferry::cuda {

// 1 in the process that loaded us, and one more in every child.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace ferry::cuda
