#include "arena.hpp"

#include <sys/mman.h>

#include <cstring>

#include "faults_of_memory.hpp"

namespace fake {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t largest_arena = std::size_t{512} << 30, smallest_arena = std::size_t{64} << 30;
constexpr std::size_t poison_limit = std::size_t{64} << 20;  // filling more would make big-stride tests slow

}  // namespace

Arena::Arena() {
  void* memory = MAP_FAILED;
  for (size_ = largest_arena; memory == MAP_FAILED && size_ >= smallest_arena; size_ /= 2) {
    memory = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  size_ *= 2;
  if (memory == MAP_FAILED) return;
  base_ = reinterpret_cast<std::uintptr_t>(memory);
  next_ = base_ + page;
  watch_memory(base_, size_);
}

Pointer Arena::allocate(std::size_t nbytes, Device device, u64 context_id) {
  const std::size_t aligned = (nbytes + 255) / 256 * 256;
  const std::size_t pages = (aligned + page - 1) / page * page;
  if (base_ == 0 || nbytes == 0 || pages + 2 * page > base_ + size_ - next_) return 0;
  Allocation made{};
  made.number = ++last_number_;
  made.device = device;
  made.context_id = context_id;
  made.pages = next_;
  made.pages_end = next_ + pages;
  made.begin = made.pages_end - aligned;
  made.nbytes = nbytes;
  next_ += pages + page;
  set_page_state(made.pages, made.pages_end, PageState::live);
  auto& kept = by_address_[made.begin] = made;
  open(kept);
  if (pages <= poison_limit) std::memset(reinterpret_cast<void*>(kept.pages), fresh_poison, pages);
  close(kept);
  return kept.begin;
}

void Arena::free(Allocation& allocation) {
  allocation.freed = true;
  set_page_state(allocation.pages, allocation.pages_end, PageState::freed);
  void* pages = reinterpret_cast<void*>(allocation.pages);
  madvise(pages, allocation.pages_end - allocation.pages, MADV_DONTNEED);
  mprotect(pages, allocation.pages_end - allocation.pages, PROT_NONE);
}

void Arena::forget_all() {
  for (auto& [begin, allocation] : by_address_) {
    if (!allocation.freed) free(allocation);
  }
  by_address_.clear();
  last_number_ = 0;
}

Allocation* Arena::find(Pointer address, std::size_t nbytes) {
  auto after = by_address_.upper_bound(address);
  if (after == by_address_.begin()) return nullptr;
  auto& candidate = std::prev(after)->second;
  const std::size_t offset = address - candidate.begin;
  return offset <= candidate.nbytes && nbytes <= candidate.nbytes - offset ? &candidate : nullptr;
}

Allocation* Arena::by_number(u64 number) {
  for (auto& [begin, allocation] : by_address_) {
    if (allocation.number == number) return &allocation;
  }
  return nullptr;
}

void Arena::open(Allocation& allocation) {
  if (allocation.open++ == 0) {
    mprotect(reinterpret_cast<void*>(allocation.pages), allocation.pages_end - allocation.pages,
             PROT_READ | PROT_WRITE);
  }
}

void Arena::close(Allocation& allocation) {
  if (--allocation.open == 0) {
    mprotect(reinterpret_cast<void*>(allocation.pages), allocation.pages_end - allocation.pages, PROT_NONE);
  }
}

std::int64_t Arena::live_bytes() const {
  std::int64_t total = 0;
  for (const auto& [begin, allocation] : by_address_) {
    if (!allocation.freed) total += static_cast<std::int64_t>(allocation.nbytes);
  }
  return total;
}

void Arena::collect_touches(Report& report) {
  for (const Touch& touch : take_touches()) {
    const std::string who = touch.by_device ? "device" : "host";
    auto after = by_address_.upper_bound(touch.address);
    const Allocation* owner = nullptr;
    if (after != by_address_.begin()) owner = &std::prev(after)->second;
    if (owner == nullptr && after != by_address_.end()) owner = &after->second;
    std::string where = "device memory that nobody owns";
    if (owner != nullptr) {
      where = text("offset ", static_cast<long long>(touch.address - owner->begin), " of device#", owner->number, " (",
                   owner->nbytes, " bytes", touch.state == PageState::freed ? ", freed)" : ")");
    }
    if (!touch.quiet) report.violation(who + " touched " + where);
    const std::uintptr_t first = touch.address / page * page;
    if (owner != nullptr && owner->open > 0 && first >= owner->pages && first < owner->pages_end) continue;
    mprotect(reinterpret_cast<void*>(first), page, PROT_NONE);
  }
}

bool& on_device() { return running_on_device; }

}  // namespace fake
