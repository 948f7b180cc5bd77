#include "host_memory.hpp"

#include <sys/mman.h>

#include "host_pages.hpp"

namespace fake {

HostRange HostMemory::classify(std::uintptr_t address, std::size_t nbytes) {
  for (auto& [begin, registration] : by_address_) {
    if (address >= begin && address + nbytes <= registration.end()) return {HostKind::pinned, &registration};
    if (address < registration.end() && address + nbytes > begin) return {HostKind::mixed, nullptr};
  }
  return {HostKind::pageable, nullptr};
}

bool HostMemory::overlaps(std::uintptr_t address, std::size_t nbytes) const {
  for (const auto& [begin, registration] : by_address_) {
    if (page_down(address) < page_up(registration.end()) && page_up(address + nbytes) > page_down(begin)) return true;
  }
  return false;
}

Registration& HostMemory::add(std::uintptr_t address, std::size_t nbytes, unsigned flags, bool allocated,
                              u64 context_id, Device device) {
  return by_address_[address] = {++last_, address, nbytes, flags, allocated, context_id, device};
}

Registration* HostMemory::starting_at(std::uintptr_t address) {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : &found->second;
}

std::uint64_t HostMemory::locked_bytes() const {
  std::uint64_t total = 0;
  for (const auto& [begin, registration] : by_address_) total += page_up(registration.end()) - page_down(begin);
  return total;
}

void HostMemory::clear() {
  for (auto& [begin, registration] : by_address_) {
    if (registration.allocated) munmap(reinterpret_cast<void*>(begin), page_up(registration.nbytes));
  }
  by_address_.clear();
  last_ = 0;
}

}  // namespace fake
