// What the process may do with pages.
#pragma once

#include <cstddef>
#include <filesystem>

namespace ferry {

// Can all these bytes be written to, as the system's list of mappings says? True where there is no list. `root` is
// where proc/ is found.
[[nodiscard]] bool pages_are_writable(const std::byte* data, std::size_t nbytes,
                                      const std::filesystem::path& root = "/");

}  // namespace ferry
