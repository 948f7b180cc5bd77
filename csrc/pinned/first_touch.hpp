// Putting pages in place before they are locked.
#pragma once

#include <cstddef>

namespace ferry {

// Touches every page of fresh memory, which stays zero; many pages with as many threads as are worth it.
void touch_pages(std::byte* data, std::size_t nbytes) noexcept;

}  // namespace ferry
