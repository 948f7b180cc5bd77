#include "pinned/pinned_pages.hpp"

#include <algorithm>
#include <utility>

#include "cuda/driver_error.hpp"
#include "pinned/kept_for_good.hpp"

namespace ferry {
namespace {

struct Use {
  Use(std::vector<Pages> held, std::shared_ptr<void> kept) : pages(std::move(held)), owner(std::move(kept)) {
    for (const Pages& one : pages) one->uses->fetch_add(1, std::memory_order_relaxed);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  // Counted until nothing is held any more: whoever sees no use, and lets go, is the last one, and unregisters there.
  ~Use() {
    owner.reset();
    for (Pages& one : pages) {
      const std::shared_ptr<std::atomic<std::size_t>> uses = one->uses;
      one.reset();
      uses->fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<Pages> pages;
  std::shared_ptr<void> owner;
};

}  // namespace

PinnedPages::~PinnedPages() {
  // A child has none of its parent's registrations, and another thread may have been at the state.
  if (!registration || cuda::fork_generation() != state->generation) return;
  cuda::CUresult code = cuda::success;
  {
    const Turn turn(*state);
    code = registration->release();
    const std::lock_guard lock(state->mutex);
    const auto known = state->pages.find(begin);
    if (known != state->pages.end() && known->second.identity == this) state->pages.erase(known);
  }
  cuda::report_cleanup(code, "cuMemHostUnregister");
  if (code != cuda::success) keep_for_good(owners);  // it may still be registered, and must stay mapped
}

std::size_t PinnedRange::piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept {
  for (const Pages& one : pages_) {
    if (data >= one->begin && data < one->end) return std::min(nbytes, static_cast<std::size_t>(one->end - data));
  }
  return 0;
}

std::shared_ptr<void> PinnedRange::use(std::shared_ptr<void> owner) const {
  return std::make_shared<Use>(pages_, std::move(owner));
}

bool PinnedRange::in_use() const noexcept {
  return std::any_of(pages_.begin(), pages_.end(),
                     [](const Pages& one) { return one->uses->load(std::memory_order_acquire) > 0; });
}

bool PinnedRange::read_only() const noexcept {
  return std::any_of(pages_.begin(), pages_.end(), [](const Pages& one) { return one->read_only; });
}

}  // namespace ferry
