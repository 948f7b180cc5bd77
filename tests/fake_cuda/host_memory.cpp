#include "host_memory.hpp"

#include <sys/mman.h>

#include <cstring>

#include "arena.hpp"
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
  const std::uintptr_t window = windows_.make(address, nbytes);
  return by_address_[address] = {++last_, address, nbytes, flags, allocated, context_id, device, window};
}

Registration* HostMemory::starting_at(std::uintptr_t address) {
  const auto found = by_address_.find(address);
  return found == by_address_.end() ? nullptr : &found->second;
}

const Registration* HostMemory::seen_at(std::uintptr_t address) const {
  for (const auto& [begin, registration] : by_address_) {
    if (registration.window != 0 && address - registration.window < registration.nbytes) return &registration;
  }
  return nullptr;
}

void HostMemory::drop_with(u64 context_id) {
  std::erase_if(by_address_, [&](const auto& at) {
    const Registration& one = at.second;
    if (one.context_id != context_id) return false;
    if (one.allocated) {
      std::memset(reinterpret_cast<void*>(one.begin), freed_poison, one.nbytes);
      retired_.push_back(one);
    }
    return true;
  });
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
  for (const Registration& one : retired_) munmap(reinterpret_cast<void*>(one.begin), page_up(one.nbytes));
  by_address_.clear();
  retired_.clear();
  windows_.forget_all();
  last_ = 0;
}

}  // namespace fake
