// What a kernel stored into host memory, and in which orders the host may see it.
//
// A device promises the host nothing about the order of plain stores. Ordered before a later store of the same thread
// are only, by a fence at system scope between the two: the thread's own stores, those of its block up to the last
// barrier, and what another thread had fenced before it took a ticket that this one has taken after it. A store with
// release is a fence and a store. Stores to the same bytes stay in their order. A store of at most 16 bytes arrives at
// once, a larger one in pieces.
//
// So a missing fence, barrier or ticket lets the flag arrive before the data. Not modelled: what the host's own caches
// do, a device's loads that are too early (kernels run one instruction after the other), and other devices.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace fake {

struct Piece {
  std::uintptr_t to;  ///< host address
  std::uint8_t nbytes;
  bool release;
  unsigned char value[16];
};

/// Make it so. A store with release is told to a thread sanitizer as such.
void publish(const Piece& piece);

struct KernelThread {
  std::uint32_t block, thread;
};

class StoreLog {
 public:
  /// A store that is about to happen at `from` (the device's view), and will be seen at `to`.
  void store(KernelThread by, std::uintptr_t to, std::uintptr_t from, std::size_t nbytes, bool release);
  void fence(KernelThread by) { note(Kind::fence, by, 0); }
  void ticket(KernelThread by, std::uintptr_t counter) { note(Kind::ticket, by, counter); }
  void barrier(std::uint32_t block) { note(Kind::barrier, {block, 0}, 0); }

  /// Every store in an order that the host may see, the more treacherous the likelier.
  std::vector<Piece> in_some_order(std::mt19937_64& random);

 private:
  enum class Kind : unsigned char { store, fence, ticket, barrier };
  struct Event {
    Kind kind;
    KernelThread by;
    std::uintptr_t what;  ///< index of the store; address of the counter
  };
  friend class StoreOrder;

  void note(Kind kind, KernelThread by, std::uintptr_t what);
  void take_values();

  std::vector<Event> events_;
  std::vector<Piece> stores_;
  std::vector<std::uintptr_t> values_at_;  ///< where the values of the newest stores will be
};

}  // namespace fake
