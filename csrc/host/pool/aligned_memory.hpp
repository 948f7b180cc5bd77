// Small memory from malloc, aligned to 64 bytes: malloc keeps small memory warm by itself.
#pragma once

#include <cstddef>

namespace ferry {

// Each returns nullptr when there is no memory; `aligned_resize` then leaves the old memory as it was.
[[nodiscard]] std::byte* aligned_new(std::size_t nbytes) noexcept;
[[nodiscard]] std::byte* aligned_resize(std::byte* data, std::size_t nbytes) noexcept;
void aligned_delete(std::byte* data) noexcept;

}  // namespace ferry
