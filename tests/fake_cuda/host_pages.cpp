#include "host_pages.hpp"

#include <sys/mman.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace fake {

bool is_mapped(std::uintptr_t address, std::size_t nbytes) {
  const auto begin = page_down(address), end = page_up(address + nbytes);
  constexpr std::size_t most = 1024;
  unsigned char resident[most];
  for (auto at = begin; at < end; at += most * host_page) {
    const auto n = end - at < most * host_page ? end - at : most * host_page;
    if (mincore(reinterpret_cast<void*>(at), n, resident) != 0) return false;
  }
  return true;
}

bool is_writable(std::uintptr_t address, std::size_t nbytes) {
  auto at = page_down(address);
  const auto end = page_up(address + nbytes);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; at < end && std::getline(maps, line);) {
    std::uintptr_t begin = 0, stop = 0;
    char dash = 0;
    std::string flags;
    std::istringstream fields(line);
    fields >> std::hex >> begin >> dash >> stop >> flags;
    if (begin <= at && at < stop) {
      if (flags.size() < 2 || flags[1] != 'w') return false;
      at = stop;
    }
  }
  return at >= end;
}

bool is_copied_at_fork(std::uintptr_t address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false, copied = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, stop = 0;
    char dash = 0;
    std::string flags;
    std::istringstream fields(line);
    if (fields >> std::hex >> begin >> dash >> stop >> flags && dash == '-' && flags.size() == 4) {
      inside = begin <= address && address < stop;
      if (inside) copied = flags[3] == 'p';
    } else if (inside && line.starts_with("VmFlags:") && line.find(" dc") != std::string::npos) {
      copied = false;
    }
  }
  return copied;
}

}  // namespace fake
