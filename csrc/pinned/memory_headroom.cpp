#include "pinned/memory_headroom.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "host/pool/memory_limit.hpp"

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t asked_from_nbytes = std::size_t{1} << 20;

struct Files {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // a line of memory.stat: page cache that nobody has used for long
};
constexpr Files version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
constexpr Files version_2{"memory.max", "memory.current", "inactive_file "};

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  return std::getline(stream, text) ? parsed_limit(text) : std::nullopt;
}

// The number behind `name` in a file of "name number" lines.
std::optional<std::uint64_t> number_after(const fs::path& file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(name)) continue;
    const auto first = line.find_first_not_of(' ', name.size());
    if (first == std::string::npos) return std::nullopt;
    return parsed_limit(std::string_view(line).substr(first, line.find(' ', first) - first));
  }
  return std::nullopt;
}

void lower(std::uint64_t& headroom, const fs::path& group, const Files& files) {
  const auto limit = number_in(group / files.limit), usage = number_in(group / files.usage);
  if (!limit || !usage) return;
  const std::uint64_t reclaimable = number_after(group / "memory.stat", files.reclaimable).value_or(0);
  const std::uint64_t used = *usage - std::min(*usage, reclaimable);
  headroom = std::min(headroom, *limit - std::min(*limit, used));
}

// Every group on the way up to the mount may set a limit. Inside a container the mount is the group.
void lower_along(std::uint64_t& headroom, const fs::path& mount, fs::path group, const Files& files) {
  for (; group.has_relative_path(); group = group.parent_path()) {
    lower(headroom, mount / group.relative_path(), files);
  }
  lower(headroom, mount, files);
}

}  // namespace

std::uint64_t memory_headroom_nbytes(const fs::path& root) {
  std::uint64_t headroom = std::numeric_limits<std::uint64_t>::max();
  if (const auto kibibytes = number_after(root / "proc/meminfo", "MemAvailable:")) headroom = *kibibytes * 1024;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/a/b" is version 2, "5:cpu,memory:/a/b" is version 1
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers(1, ',');
    controllers.append(line, first + 1, second - first - 1).push_back(',');
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") lower_along(headroom, mounts, group, version_2);
    if (controllers.find(",memory,") != std::string::npos) {
      lower_along(headroom, mounts / "memory", group, version_1);
    }
  }
  return headroom;
}

bool may_touch(std::size_t nbytes, const fs::path& root) {
  if (nbytes < asked_from_nbytes) return true;
  const std::uint64_t headroom = memory_headroom_nbytes(root);
  return nbytes <= headroom - headroom / 8;
}

}  // namespace ferry
