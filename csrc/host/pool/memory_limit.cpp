#include "host/pool/memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace ferry {
namespace {

namespace fs = std::filesystem;

void lower(std::optional<std::uint64_t>& smallest, const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  if (!std::getline(stream, text)) return;
  const auto limit = parsed_limit(text);
  if (limit) smallest = std::min(*limit, smallest.value_or(*limit));
}

// Every group on the way from `group` up to the mount may set a limit. Inside a container the mount is the group.
void lower_along(std::optional<std::uint64_t>& smallest, const fs::path& mount, fs::path group, const char* file) {
  for (; group.has_relative_path(); group = group.parent_path()) {
    lower(smallest, mount / group.relative_path() / file);
  }
  lower(smallest, mount / file);
}

bool lists_memory(std::string_view controllers) noexcept {
  while (!controllers.empty()) {
    const std::string_view name = controllers.substr(0, controllers.find(','));
    if (name == "memory") return true;
    controllers.remove_prefix(std::min(name.size() + 1, controllers.size()));
  }
  return false;
}

}  // namespace

std::optional<std::uint64_t> parsed_limit(std::string_view text) noexcept {
  std::uint64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || text.find_first_not_of(" \n", static_cast<std::size_t>(end - text.data())) != text.npos) {
    return std::nullopt;
  }
  return limit;
}

std::optional<std::uint64_t> control_group_limit_nbytes(const fs::path& root) {
  std::optional<std::uint64_t> smallest;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" is version 2, "5:cpu,memory:/a/b" is version 1
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers(line.data() + first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) lower_along(smallest, mounts, group, "memory.max");
    if (lists_memory(controllers)) lower_along(smallest, mounts / "memory", group, "memory.limit_in_bytes");
  }
  return smallest;
}

std::uint64_t memory_limit_nbytes() {
  const auto physical =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return std::min(physical, control_group_limit_nbytes().value_or(physical));
}

}  // namespace ferry
