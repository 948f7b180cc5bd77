// How much memory this process may use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace ferry {

// What a control group's limit file says; nothing for "max" and for what is no number.
[[nodiscard]] std::optional<std::uint64_t> parsed_limit(std::string_view text) noexcept;

// The smallest limit of the control groups (versions 1 and 2) that the process belongs to, if any; `root` is where
// proc/ and sys/ are found.
[[nodiscard]] std::optional<std::uint64_t> control_group_limit_nbytes(const std::filesystem::path& root = "/");

// Physical memory, or the control groups' limit where that is less.
[[nodiscard]] std::uint64_t memory_limit_nbytes();

}  // namespace ferry
