#include "pinned/page_access.hpp"

#include <cstdint>
#include <fstream>
#include <string>

namespace ferry {

// Lines such as "7f01a000-7f01c000 rw-p 00000000 08:01 1234 /name", in order of address.
bool pages_are_writable(const std::byte* data, std::size_t nbytes, const std::filesystem::path& root) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  std::ifstream list(root / "proc/self/maps");
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;
  char dash = 0;
  std::string access;
  while (list >> std::hex >> from >> dash >> to >> access) {
    if (from >= begin + nbytes) break;
    if (to > begin && access.size() > 1 && access[1] != 'w') return false;
    std::getline(list, access);
  }
  return true;
}

}  // namespace ferry
