#include "host/pool/pool.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <new>

#include "host/pool/address_sanitizer.hpp"

namespace ferry {
namespace {

constexpr std::size_t waste_divisor = 8;

}  // namespace

Lease::~Lease() {
  if (!block_.empty()) pool_->take_back(*this);
}

Pool::~Pool() {
  assert(stats_.in_use_blocks == 0);
  trim(0);
}

std::optional<Pool::Nodes> Pool::best_fit(std::size_t wanted) noexcept {
  if (!latest_.block.empty() && latest_.block.mapped().nbytes() == wanted) return std::move(latest_);
  shelve_latest();
  const auto found = shelf_.lower_bound({wanted, std::numeric_limits<std::uint64_t>::max()});
  if (found == shelf_.end() || found->first.nbytes - wanted > wanted / waste_divisor) return std::nullopt;
  auto age = ages_.extract(found->first.returned);
  return Nodes{shelf_.extract(found), std::move(age)};
}

Lease Pool::lease(std::size_t nbytes) {
  const std::size_t wanted = block_nbytes(nbytes);
  {
    const std::lock_guard lock(mutex_);
    if (auto nodes = best_fit(wanted)) {
      const Block& block = nodes->block.mapped();
      ++stats_.hits;
      --stats_.idle_blocks;
      ++stats_.in_use_blocks;
      stats_.idle_nbytes -= block.nbytes();
      stats_.in_use_nbytes += block.nbytes();
      allow_access(block.data(), nbytes);
      return {*this, std::move(nodes->block), std::move(nodes->age), nbytes};
    }
  }
  // Outside of the lock: the system may take its time.
  Shelf fresh;
  Ages age{{0, wanted}};
  try {
    fresh.emplace(Lease::Place{wanted, 0}, wanted);
  } catch (const std::bad_alloc&) {
    if (trim(0) == 0) throw;
    fresh.emplace(Lease::Place{wanted, 0}, wanted);
  }
  auto block = fresh.extract(fresh.begin());
  forbid_access(block.mapped().data(), wanted);
  allow_access(block.mapped().data(), nbytes);
  const std::lock_guard lock(mutex_);
  ++stats_.misses;
  ++stats_.in_use_blocks;
  stats_.in_use_nbytes += wanted;
  stats_.high_water_nbytes = std::max(stats_.high_water_nbytes, stats_.in_use_nbytes + stats_.idle_nbytes);
  return {*this, std::move(block), age.extract(age.begin()), nbytes};
}

void Pool::take_back(Lease& lease) noexcept {
  const std::size_t nbytes = lease.capacity();
  Shelf dropped;  // its blocks go back to the system after the lock
  forbid_access(lease.data(), nbytes);
  const std::lock_guard lock(mutex_);
  --stats_.in_use_blocks;
  stats_.in_use_nbytes -= nbytes;
  if (nbytes > stats_.limit_nbytes) {  // by itself: making room for it would empty the pool in vain
    ++stats_.trims;
    dropped.insert(std::move(lease.block_));
    return;
  }
  dropped = taken_off(stats_.limit_nbytes - nbytes);
  shelve_latest();
  lease.age_.key() = lease.block_.key().returned = ++returns_;
  latest_ = {std::move(lease.block_), std::move(lease.age_)};
  ++stats_.idle_blocks;
  stats_.idle_nbytes += nbytes;
}

void Pool::shelve_latest() noexcept {
  if (latest_.block.empty()) return;
  ages_.insert(std::move(latest_.age));
  shelf_.insert(std::move(latest_.block));
}

Pool::Shelf Pool::taken_off(std::size_t keep_nbytes) noexcept {
  Shelf taken;
  if (stats_.idle_nbytes > keep_nbytes) shelve_latest();
  while (stats_.idle_nbytes > keep_nbytes) {
    const auto oldest = ages_.extract(ages_.begin());
    auto block = shelf_.extract({oldest.mapped(), oldest.key()});
    --stats_.idle_blocks;
    stats_.idle_nbytes -= block.mapped().nbytes();
    ++stats_.trims;
    taken.insert(std::move(block));
  }
  return taken;
}

std::size_t Pool::trim(std::size_t keep_nbytes) noexcept {
  Shelf taken;
  {
    const std::lock_guard lock(mutex_);
    taken = taken_off(keep_nbytes);
  }
  std::size_t nbytes = 0;
  for (const auto& [place, block] : taken) nbytes += block.nbytes();
  return nbytes;
}

std::size_t Pool::set_limit(std::size_t limit_nbytes) noexcept {
  Shelf taken;
  const std::lock_guard lock(mutex_);
  const std::size_t before = std::exchange(stats_.limit_nbytes, limit_nbytes);
  taken = taken_off(limit_nbytes);
  return before;
}

PoolStats Pool::stats() const noexcept {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace ferry
