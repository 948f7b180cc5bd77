// Keeps returned blocks warm, that is with their pages in place, for whoever asks next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "host/pool/block.hpp"

namespace ferry {

struct PoolStats {
  std::size_t in_use_nbytes = 0;  // of blocks on loan
  std::size_t in_use_blocks = 0;
  std::size_t idle_nbytes = 0;  // of blocks that wait for reuse
  std::size_t idle_blocks = 0;
  std::size_t limit_nbytes = 0;       // what may be idle at most
  std::size_t high_water_nbytes = 0;  // the most that was ever on loan and idle together
  std::uint64_t hits = 0;             // leases from idle blocks
  std::uint64_t misses = 0;           // leases that took new memory
  std::uint64_t trims = 0;            // blocks given back to the system

  bool operator==(const PoolStats&) const = default;
};

class Pool;

// A block on loan; goes back to its pool when the lease dies. Must not outlive the pool.
class Lease {
 public:
  Lease(Lease&& other) noexcept = default;
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  [[nodiscard]] std::byte* data() const noexcept { return block_.mapped().data(); }
  [[nodiscard]] std::size_t nbytes() const noexcept { return nbytes_; }  // as asked for
  [[nodiscard]] std::size_t capacity() const noexcept { return block_.mapped().nbytes(); }

 private:
  friend class Pool;

  // Where a block stands among the idle ones: by size, the one returned last before its equals.
  struct Place {
    std::size_t nbytes;
    std::uint64_t returned;
    bool operator<(const Place& other) const noexcept {
      return nbytes != other.nbytes ? nbytes < other.nbytes : returned > other.returned;
    }
  };
  using Shelf = std::map<Place, Block>;
  using Ages = std::map<std::uint64_t, std::size_t>;  // `returned` to size: the oldest first

  Lease(Pool& pool, Shelf::node_type&& block, Ages::node_type&& age, std::size_t nbytes) noexcept
      : pool_(&pool), block_(std::move(block)), age_(std::move(age)), nbytes_(nbytes) {}

  // The nodes of the pool's maps travel with the block, so that a return allocates nothing and cannot fail.
  Pool* pool_;
  Shelf::node_type block_;
  Ages::node_type age_;
  std::size_t nbytes_;
};

// All functions may be called from any thread.
class Pool {
 public:
  explicit Pool(std::size_t limit_nbytes) noexcept { stats_.limit_nbytes = limit_nbytes; }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool();

  // Uninitialised memory: the idle block that fits best and wastes at most 1/8 of the request, else new memory. Throws
  // std::bad_alloc when the system has none, not even after all idle blocks went back to it.
  [[nodiscard]] Lease lease(std::size_t nbytes);

  // Gives idle blocks back to the system, those unused for longest first, until at most `keep_nbytes` are idle. Returns
  // how many bytes went back.
  std::size_t trim(std::size_t keep_nbytes) noexcept;

  // Changes what may be idle, trims to it, and returns what held before.
  std::size_t set_limit(std::size_t limit_nbytes) noexcept;

  [[nodiscard]] PoolStats stats() const noexcept;

  // Around fork(), so that the child finds the pool whole whatever other threads were doing.
  void hold_for_fork() noexcept { mutex_.lock(); }
  void release_after_fork() noexcept { mutex_.unlock(); }

 private:
  friend class Lease;
  using Shelf = Lease::Shelf;
  using Ages = Lease::Ages;

  // A block with what it needs to stand on the shelf.
  struct Nodes {
    Shelf::node_type block;
    Ages::node_type age;
  };

  std::optional<Nodes> best_fit(std::size_t wanted) noexcept;
  void take_back(Lease& lease) noexcept;
  void shelve_latest() noexcept;
  Shelf taken_off(std::size_t keep_nbytes) noexcept;

  // Invariant: the idle blocks are latest_ and those in both shelf_ and ages_, stats_.idle_* counts them, and outside
  // of the lock stats_.idle_nbytes <= stats_.limit_nbytes.
  mutable std::mutex mutex_;
  Nodes latest_;  // the block returned last, if any: often the next request has its size, and it need not be shelved
  Shelf shelf_;
  Ages ages_;
  std::uint64_t returns_ = 0;
  PoolStats stats_;
};

}  // namespace ferry
