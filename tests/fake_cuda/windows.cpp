#include "windows.hpp"

#include <sys/mman.h>

#include <cstring>

#include "host_pages.hpp"
#include "lock.hpp"

namespace fake {
namespace {

constexpr std::size_t room_for_windows = std::size_t{64} << 30;

}  // namespace

Windows::Windows() {
  void* memory = mmap(nullptr, room_for_windows, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  base_ = next_ = reinterpret_cast<std::uintptr_t>(memory);
  size_ = room_for_windows;
}

std::uintptr_t Windows::make(std::uintptr_t begin, std::size_t nbytes) {
  const std::size_t pages = page_up(begin + nbytes) - page_down(begin) + host_page;  // a page between two windows
  if (pages > size_) return 0;
  if (pages > base_ + size_ - next_) next_ = base_;  // those of long ago are gone
  const std::uintptr_t made = next_ + begin % host_page;
  next_ += pages;
  return made;
}

void Windows::open_page(std::uintptr_t page, std::uintptr_t from) {
  mprotect(reinterpret_cast<void*>(page), host_page, PROT_READ | PROT_WRITE);
  hide_from_sanitizer();  // bytes beside the ones that the kernel wants may be the host's own business
  std::memcpy(reinterpret_cast<void*>(page), reinterpret_cast<const void*>(from), host_page);
  show_to_sanitizer();
}

void Windows::close_page(std::uintptr_t page) {
  madvise(reinterpret_cast<void*>(page), host_page, MADV_DONTNEED);
  mprotect(reinterpret_cast<void*>(page), host_page, PROT_NONE);
}

}  // namespace fake
