#include "bind/pinned_pools.hpp"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "bind/device_path.hpp"

namespace ferry::bind {
namespace {

// Of callers. Leaked on purpose: arrays may die later than any static.
struct Registry {
  struct Entry {
    std::shared_ptr<PinnedPool> pool;
    bool is_closed = false;  // nobody can ask it for memory
  };
  std::mutex mutex;
  std::vector<Entry> entries;
};

Registry& registry() {
  static Registry& only = *[] {
    auto* made = new Registry;
    // So that the child finds the lock free, whatever other threads were doing.
    ::pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                     [] { registry().mutex.unlock(); });
    return made;
  }();
  return only;
}

bool is_empty(PinnedPool& pool) noexcept {
  pool.settle();
  pool.trim(0);
  const PinnedStats stats = pool.stats();
  return stats.in_use_nbytes == 0 && stats.retired_nbytes == 0;
}

}  // namespace

std::shared_ptr<PoolHandle> PoolHandle::of_results() {
  static auto& only = *new std::shared_ptr<PoolHandle>(new PoolHandle(Results{}));
  return only;
}

PoolHandle::~PoolHandle() {
  if (pool_ == nullptr || transfers_if_used() == nullptr) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (Registry::Entry& entry : all.entries) entry.is_closed = entry.is_closed || entry.pool == pool_;
}

std::shared_ptr<PinnedPool> PoolHandle::pool() {
  Transfers& used = transfers();
  if (is_results_) return used.results().shared_from_this();
  const std::lock_guard lock(mutex_);
  if (pool_ == nullptr) {
    std::shared_ptr<PinnedPool> made = PinnedPool::make(used.runtime(), limit_nbytes_, fence_);
    Registry& all = registry();
    const std::lock_guard all_lock(all.mutex);
    all.entries.push_back({made});
    pool_ = std::move(made);
  }
  return pool_;
}

std::shared_ptr<PinnedPool> PoolHandle::pool_if_used() noexcept {
  Transfers* used = transfers_if_used();
  if (used == nullptr) return nullptr;
  if (is_results_) return used->results().shared_from_this();
  const std::lock_guard lock(mutex_);
  return pool_;
}

std::size_t PoolHandle::limit_nbytes() const noexcept {
  return is_results_ ? transfer_limits().results_nbytes : limit_nbytes_;
}

bool PoolHandle::has_room(std::size_t nbytes) noexcept {
  const std::shared_ptr<PinnedPool> used = pool_if_used();
  if (used == nullptr) return nbytes <= limit_nbytes();
  const PinnedStats stats = used->stats();
  const std::size_t taken = stats.in_use_nbytes + stats.retired_nbytes;
  return taken <= stats.limit_nbytes && nbytes <= stats.limit_nbytes - taken;
}

std::vector<std::shared_ptr<PinnedPool>> used_pools() {
  std::vector<std::shared_ptr<PinnedPool>> pools;
  Transfers* used = transfers_if_used();
  if (used == nullptr) return pools;
  pools.push_back(used->results().shared_from_this());
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const Registry::Entry& entry : all.entries) pools.push_back(entry.pool);
  return pools;
}

void sweep_pools() noexcept {
  if (transfers_if_used() == nullptr) return;
  Registry& all = registry();
  std::vector<std::shared_ptr<PinnedPool>> closed;
  {
    const std::lock_guard lock(all.mutex);
    for (const Registry::Entry& entry : all.entries) {
      if (entry.is_closed) closed.push_back(entry.pool);
    }
  }
  std::erase_if(closed, [](const auto& pool) { return !is_empty(*pool); });
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.entries, [&closed](const Registry::Entry& entry) {
    return std::find(closed.begin(), closed.end(), entry.pool) != closed.end();
  });
}

}  // namespace ferry::bind
