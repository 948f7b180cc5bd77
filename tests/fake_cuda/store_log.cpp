#include "store_log.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <unordered_map>

#include "lock.hpp"

namespace fake {

/// One walk over the events. Each store gets a key; the host sees them by rising keys.
class StoreOrder {
 public:
  explicit StoreOrder(const StoreLog& log) : log_(log), keys_(log.stores_.size()), awaited_(log.stores_.size()) {}

  /// Which stores does any later one wait for?
  void find_awaited() {
    for (const auto& event : log_.events_) {
      Block& block = blocks_[event.by.block];
      Thread& thread = threads_[key_of(event.by)];
      if (event.kind == StoreLog::Kind::barrier) block.settled = block.stores.size();
      if (event.kind == StoreLog::Kind::fence) wait_for(block, thread);
      if (event.kind != StoreLog::Kind::store) continue;
      if (log_.stores_[event.what].release) wait_for(block, thread);
      thread.stores.push_back(event.what);
      block.stores.push_back(event.what);
    }
    blocks_.clear();
    threads_.clear();
  }

  std::vector<Piece> sorted(std::mt19937_64& random) {
    find_awaited();
    std::uniform_real_distribution<> chance(0, 1);
    const double apart = random() % 2 == 0 ? 4 : 0;  // blocks whose stores take longer than those of others
    for (const auto& event : log_.events_) {
      Block& block = blocks_[event.by.block];
      if (block.delay < 0) block.delay = apart * chance(random);
      Thread& thread = threads_[key_of(event.by)];
      switch (event.kind) {
        case StoreLog::Kind::fence:
          thread.after = known(block, thread);
          break;
        case StoreLog::Kind::barrier:
          block.settled_key = std::max(block.newest, block.seen);
          break;
        case StoreLog::Kind::ticket: {
          double& counter = counters_[event.what];
          counter = std::max(counter, thread.after);
          thread.seen = std::max(thread.seen, counter);
          block.seen = std::max(block.seen, thread.seen);
          break;
        }
        case StoreLog::Kind::store: {
          const Piece& piece = log_.stores_[event.what];
          const double late = awaited_[event.what] ? 0 : 2 * chance(random);
          const double least =
              piece.release ? std::max(thread.own, std::max(block.settled_key, thread.after)) : thread.after;
          double& key = keys_[event.what];
          key = std::max({chance(random) + block.delay + late, least, last_at(piece)});
          remember(piece, key);
          thread.own = std::max(thread.own, key);
          block.newest = std::max(block.newest, key);
          break;
        }
      }
    }
    std::vector<std::size_t> order(keys_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return keys_[i]; });
    std::vector<Piece> pieces;
    pieces.reserve(order.size());
    for (const std::size_t i : order) pieces.push_back(log_.stores_[i]);
    return pieces;
  }

 private:
  struct Thread {
    std::vector<std::size_t> stores;
    std::size_t waited = 0;
    double own = 0, after = 0, seen = 0;
  };
  struct Block {
    std::vector<std::size_t> stores;
    std::size_t settled = 0, waited = 0;
    double settled_key = 0, newest = 0, seen = 0, delay = -1;
  };
  struct Written {
    std::uintptr_t begin, end;
    double key;
  };

  static std::uint64_t key_of(KernelThread by) { return std::uint64_t{by.block} << 32U | by.thread; }
  static double known(const Block& block, const Thread& thread) {
    return std::max({thread.after, thread.own, thread.seen, block.settled_key});
  }
  void wait_for(Block& block, Thread& thread) {
    for (; thread.waited < thread.stores.size(); ++thread.waited) awaited_[thread.stores[thread.waited]] = true;
    for (; block.waited < block.settled; ++block.waited) awaited_[block.stores[block.waited]] = true;
  }
  double last_at(const Piece& piece) const {
    double last = 0;
    const auto found = written_.find(piece.to / 16);
    if (found == written_.end()) return last;
    for (const Written& one : found->second) {
      if (one.begin < piece.to + piece.nbytes && piece.to < one.end) last = std::max(last, one.key);
    }
    return last;
  }
  void remember(const Piece& piece, double key) {
    auto& there = written_[piece.to / 16];
    std::erase_if(there,
                  [&](const Written& one) { return one.begin >= piece.to && one.end <= piece.to + piece.nbytes; });
    there.push_back({piece.to, piece.to + piece.nbytes, key});
  }

  const StoreLog& log_;
  std::vector<double> keys_;
  std::vector<bool> awaited_;
  std::unordered_map<std::uint64_t, Thread> threads_;
  std::unordered_map<std::uint32_t, Block> blocks_;
  std::map<std::uintptr_t, double> counters_;
  std::unordered_map<std::uintptr_t, std::vector<Written>> written_;  ///< by units of 16 bytes, which no piece crosses
};

void StoreLog::note(Kind kind, KernelThread by, std::uintptr_t what) {
  take_values();
  events_.push_back({kind, by, what});
}

void StoreLog::take_values() {
  for (std::size_t i = 0; i < values_at_.size(); ++i) {
    Piece& piece = stores_[stores_.size() - values_at_.size() + i];
    std::memcpy(piece.value, reinterpret_cast<const void*>(values_at_[i]), piece.nbytes);
  }
  values_at_.clear();
}

void StoreLog::store(KernelThread by, std::uintptr_t to, std::uintptr_t from, std::size_t nbytes, bool release) {
  take_values();
  while (nbytes > 0) {
    const std::size_t n = std::min(nbytes, 16 - to % 16);
    events_.push_back({Kind::store, by, stores_.size()});
    stores_.push_back({to, static_cast<std::uint8_t>(n), release, {}});
    values_at_.push_back(from);
    to += n;
    from += n;
    nbytes -= n;
  }
}

std::vector<Piece> StoreLog::in_some_order(std::mt19937_64& random) {
  take_values();
  return stores_.empty() ? std::vector<Piece>{} : StoreOrder(*this).sorted(random);
}

namespace {

template <class T>
void store_at_once(const Piece& piece) {
  T value;
  std::memcpy(&value, piece.value, sizeof(T));
  *reinterpret_cast<volatile T*>(piece.to) = value;
}

}  // namespace

void publish(const Piece& piece) {
  using Sixteen [[gnu::vector_size(16)]] = long long;
  if (piece.release) {
    order_before(reinterpret_cast<void*>(piece.to));
    hide_from_sanitizer();
    std::uint64_t value = 0;
    std::memcpy(&value, piece.value, sizeof(value));
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(piece.to), value, __ATOMIC_RELEASE);
    show_to_sanitizer();
  } else if (piece.to % piece.nbytes == 0 && piece.nbytes == 16) {
    store_at_once<Sixteen>(piece);
  } else if (piece.to % piece.nbytes == 0 && piece.nbytes == 8) {
    store_at_once<std::uint64_t>(piece);
  } else if (piece.to % piece.nbytes == 0 && piece.nbytes == 4) {
    store_at_once<std::uint32_t>(piece);
  } else {
    std::memcpy(reinterpret_cast<void*>(piece.to), piece.value, piece.nbytes);
  }
}

}  // namespace fake
