// How much more memory this process may take before the system kills somebody for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace ferry {

// What is available of physical memory, or what the control groups (versions 1 and 2) leave where that is less: their
// limits, less what is in use and cannot be reclaimed. `root` is where proc/ and sys/ are found.
[[nodiscard]] std::uint64_t memory_headroom_nbytes(const std::filesystem::path& root = "/");

// May so many pages be touched? An eighth of the headroom stays for others. Few pages are never refused: to ask would
// take longer than to touch them.
[[nodiscard]] bool may_touch(std::size_t nbytes, const std::filesystem::path& root = "/");

}  // namespace ferry
