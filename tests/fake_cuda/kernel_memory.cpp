#include "kernel_memory.hpp"

#include <algorithm>

#include "faults_of_memory.hpp"
#include "host_pages.hpp"

namespace fake {

LockForOperation::LockForOperation() : held_(runs_under_lock()) {
  hide_from_sanitizer();
  if (!held_) world().mutex.lock();
}

LockForOperation::~LockForOperation() {
  if (!held_) world().mutex.unlock();
  show_to_sanitizer();
}

namespace {

SharedMemory& only_shared_memory() {
  static SharedMemory& only = *new SharedMemory;
  return only;
}

}  // namespace

KernelMemory::KernelMemory(std::string kernel, Device device)
    : shared(only_shared_memory()), kernel_(std::move(kernel)), device_(device) {
  const LockForOperation lock;
  World& w = world();
  same_pointers_ = w.settings.same_host_pointers;
  for (const auto& [begin, allocation] : w.arena.all()) {
    if (allocation.freed || allocation.device != device) continue;
    ranges_.push_back({begin, begin + allocation.nbytes, allocation.number, false});
  }
  for (const auto& [begin, one] : w.host.all()) {
    const bool writable = one.allocated || (one.flags & host_read_only) == 0;
    windows_.push_back({one.window, one.window + one.nbytes, begin, one.number, writable});
  }
  quiet_touches() = true;
}

KernelMemory::~KernelMemory() {
  quiet_touches() = false;
  for (const std::uintptr_t page : pages_) Windows::close_page(page);
  const LockForOperation lock;
  World& w = world();
  for (const Range& range : ranges_) {
    Allocation* opened = range.opened ? w.arena.find(range.begin, 0) : nullptr;
    if (opened != nullptr) w.arena.close(*opened);
  }
  for (const std::uintptr_t begin : beside_) {
    if (Allocation* opened = w.arena.find(begin, 0)) w.arena.close(*opened);
  }
  for (const auto& what : wrongs_) w.report.violation(text("kernel ", kernel_, " ", what));
}

void KernelMemory::wrong(const std::string& what) {
  const auto kind = [](const std::string& one) { return one.substr(0, one.find_first_of("0123456789")); };
  const bool known = std::ranges::any_of(wrongs_, [&](const auto& one) { return kind(one) == kind(what); });
  if (!known) wrongs_.push_back(what);
}

std::uintptr_t KernelMemory::translated(std::uintptr_t word) const {
  if (!same_pointers_) return word;
  for (const Window& window : windows_) {
    const std::uintptr_t offset = word - window.host;
    if (window.begin != 0 && offset < window.end - window.begin) return window.begin + offset;
  }
  return word;
}

bool KernelMemory::touch(KernelThread by, std::uintptr_t address, std::size_t nbytes, bool writes, bool aligned) {
  if (aligned && address % nbytes != 0) {
    wrong(text("used a misaligned address for ", nbytes, " bytes"));
    failure = misaligned_address;
    return false;
  }
  if (address >= last_begin_ && address + nbytes <= last_end_) return true;
  if (shared.contains(address)) {
    const std::string bad = shared.touch(address, nbytes, writes, by.thread);
    if (!bad.empty()) wrong(bad);
    return true;
  }
  if (world().arena.contains(address)) return touch_device(address, nbytes, writes);
  if (world().host.is_window(address)) return touch_window(by, address, nbytes, writes, false);
  return touch_other(address, nbytes, writes);
}

bool KernelMemory::touch_device(std::uintptr_t address, std::size_t nbytes, bool writes) {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::begin);
  if (after != ranges_.begin()) {
    Range& range = *std::prev(after);
    if (address + nbytes <= range.end) {
      if (!range.opened) {
        const LockForOperation lock;
        Allocation* opened = world().arena.find(range.begin, 0);
        if (opened != nullptr) world().arena.open(*opened);
        range.opened = opened != nullptr;
      }
      last_begin_ = range.begin;
      last_end_ = range.end;
      return true;
    }
  }
  const LockForOperation lock;
  const Allocation* owner = nullptr;
  for (auto& [begin, one] : world().arena.all()) {
    if (begin <= address || owner == nullptr) owner = &one;
    if (one.freed || address >= one.pages_end || address + nbytes <= one.pages) continue;
    world().arena.open(one);  // beside the allocation and on its pages, which must not be filled with poison
    beside_.push_back(one.begin);
  }
  const std::string what = text(writes ? "wrote " : "read ", nbytes, " bytes at ");
  if (owner == nullptr) {
    wrong(what + "device memory that nobody owns");
  } else {
    wrong(text(what, "offset ", static_cast<long long>(address - owner->begin), " of device#", owner->number, " (",
               owner->nbytes, " bytes", owner->freed ? ", freed" : "",
               owner->device != device_ ? ", of another device)" : ")"));
  }
  return true;  // the page that is there in its place takes it
}

bool KernelMemory::open_pages(std::uintptr_t address, std::size_t nbytes, const Window& window) {
  for (auto page = page_down(address); page < address + nbytes; page += host_page) {
    if (page == last_page_ || std::ranges::binary_search(pages_, page)) continue;
    const std::uintptr_t host = page_down(window.host) + (page - page_down(window.begin));
    if (!is_mapped(host, 1)) {
      wrong(text("touched host#", window.number, ", which is no longer mapped"));
      return false;
    }
    Windows::open_page(page, host);
    pages_.insert(std::ranges::upper_bound(pages_, page), page);
  }
  last_page_ = page_down(address + nbytes - 1);
  return true;
}

bool KernelMemory::touch_window(KernelThread by, std::uintptr_t address, std::size_t nbytes, bool writes,
                                bool release) {
  for (const Window& window : windows_) {
    if (window.begin == 0 || address < page_down(window.begin) || address >= page_up(window.end)) continue;
    const bool inside = address >= window.begin && address + nbytes <= window.end;
    if (!inside) {
      wrong(text(writes ? "wrote " : "read ", nbytes, " bytes at offset ",
                 static_cast<long long>(address - window.begin), " of host#", window.number, " (",
                 window.end - window.begin, " bytes)"));
    }
    if (writes && !window.writable) wrong(text("wrote into host#", window.number, ", registered for reading only"));
    if (!open_pages(address, nbytes, window)) return false;
    if (writes && inside) log.store(by, window.host + (address - window.begin), address, nbytes, release);
    return true;
  }
  wrong("used the device's address of host memory that is not registered");
  return false;
}

bool KernelMemory::touch_other(std::uintptr_t address, std::size_t nbytes, bool writes) {
  const auto offset = [&](const Window& window) { return address - window.host; };
  const auto found =
      std::ranges::find_if(windows_, [&](const Window& window) { return offset(window) < window.end - window.begin; });
  constexpr std::uintptr_t half = ~std::uintptr_t{0} / 2;  // the kernel's own half: beyond it sums of addresses wrap
  const bool mapped = address < half && is_mapped(address, nbytes);
  if (found == windows_.end()) {
    wrong(mapped ? "touched host memory that is not registered" : "touched memory that is not there");
    return false;
  }
  if (!same_pointers_) {
    wrong(text("used the host's address of host#", found->number));
  } else if (writes && !found->writable) {
    wrong(text("wrote into host#", found->number, ", registered for reading only"));
  }
  // Through a pointer that the kernel has read from memory: it is the host's own, and a store there is seen at once.
  return mapped && (!writes || is_writable(address, nbytes));
}

bool KernelMemory::store_release(KernelThread by, std::uint64_t* at, std::uint64_t value) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const bool mapped = world().host.is_window(address);
  const bool may = mapped && address % sizeof(value) == 0 ? touch_window(by, address, sizeof(value), true, true)
                                                          : touch(by, address, sizeof(value), true, true);
  if (may) *at = value;
  if (may && !mapped) log.fence(by);
  return may;
}

}  // namespace fake
