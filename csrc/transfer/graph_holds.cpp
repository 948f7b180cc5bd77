#include "transfer/graph_holds.hpp"

#include <atomic>
#include <utility>

#include "cuda/driver_error.hpp"
#include "pinned/kept_for_good.hpp"

namespace ferry {
namespace {

constexpr unsigned no_destructor_sync = 1;  // CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, the only flag there is
constexpr unsigned move_reference = 1;      // CU_GRAPH_USER_OBJECT_MOVE

}  // namespace

// The driver has the address of `gone` until it calls note_gone().
struct GraphHolds::Entry {
  std::atomic<bool> gone{false};
  Holds holds;

  // On a thread of the driver's, where the driver may not be called, nor anything waited for. Nothing of the entry is
  // touched after the store, since reap() may delete it then.
  static void note_gone(void* gone) { static_cast<std::atomic<bool>*>(gone)->store(true, std::memory_order_release); }
};

GraphHolds::GraphHolds() = default;

GraphHolds::~GraphHolds() {
  if (cuda::fork_generation() == generation_) reap();
  keep_for_good(entries_);
}

bool GraphHolds::retain(const cuda::Functions& functions, cuda::CUgraph graph, Holds holds) {
  if (functions.cuGraphRetainUserObject == nullptr) {
    abandon(std::move(holds));
    return false;
  }
  std::list<Entry> one;
  Entry& entry = one.emplace_back();
  entry.holds = std::move(holds);
  cuda::CUuserObject object = nullptr;
  cuda::check(functions, functions.cuUserObjectCreate(&object, &entry.gone, &Entry::note_gone, 1, no_destructor_sync),
              "cuUserObjectCreate");
  {
    const std::lock_guard lock(mutex_);
    entries_.splice(entries_.end(), one);
  }
  const cuda::CUresult code = functions.cuGraphRetainUserObject(graph, object, 1, move_reference);
  if (code != cuda::success) cuda::report_cleanup(functions.cuUserObjectRelease(object, 1), "cuUserObjectRelease");
  cuda::check(functions, code, "cuGraphRetainUserObject");
  return true;
}

void GraphHolds::reap() noexcept {
  std::list<Entry> gone;  // let go of without the lock
  const std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto here = entry++;
    if (here->gone.load(std::memory_order_acquire)) gone.splice(gone.end(), entries_, here);
  }
}

std::size_t GraphHolds::graphs() const noexcept {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace ferry
