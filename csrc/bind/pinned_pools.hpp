// The pools of pinned memory of this process: that of results, and those that callers have made.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "pinned/pinned_pool.hpp"

namespace ferry::bind {

// A pool that is made when memory is first pinned for it: before, there may be no driver. Any thread; call everything
// without the GIL.
class PoolHandle {
 public:
  PoolHandle(std::size_t limit_nbytes, Fence fence) noexcept : limit_nbytes_(limit_nbytes), fence_(fence) {}
  PoolHandle(const PoolHandle&) = delete;
  PoolHandle& operator=(const PoolHandle&) = delete;
  ~PoolHandle();  // arrays may outlive it

  // That of results.
  [[nodiscard]] static std::shared_ptr<PoolHandle> of_results();

  // Throws Error where there is no driver to work with.
  [[nodiscard]] std::shared_ptr<PinnedPool> pool();
  // Null while nothing was pinned for it, and in a forked child.
  [[nodiscard]] std::shared_ptr<PinnedPool> pool_if_used() noexcept;
  [[nodiscard]] std::size_t limit_nbytes() const noexcept;
  // Would so many bytes be within the limit now? Waits for nothing and gives nothing back to make room.
  [[nodiscard]] bool has_room(std::size_t nbytes) noexcept;

 private:
  struct Results {};
  explicit PoolHandle(Results) noexcept : is_results_(true) {}

  std::size_t limit_nbytes_ = 0;
  Fence fence_ = Fence::streams;
  const bool is_results_ = false;
  std::mutex mutex_;
  std::shared_ptr<PinnedPool> pool_;
};

// All that are in use; none in a forked child. Without the GIL.
[[nodiscard]] std::vector<std::shared_ptr<PinnedPool>> used_pools();
// Lets go of pools that nobody can ask for memory any more, once all their memory is back. Without the GIL.
void sweep_pools() noexcept;

}  // namespace ferry::bind
