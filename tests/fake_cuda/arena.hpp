// Device memory: one reserved range that nobody may touch, opened page by page only while a device operation runs.
// A touch by anyone else is recorded by the fault handler, which gives the page away filled with poison and goes on.
#pragma once

#include <map>
#include <optional>

#include "report.hpp"
#include "types.hpp"

namespace fake {

inline constexpr unsigned char fresh_poison = 0xDE, freed_poison = 0xF5, pending_poison = 0xA5;

struct Allocation {
  u64 number;
  Device device;
  u64 context_id;
  std::uintptr_t begin;  ///< ends flush with its last page; the page behind is a guard
  std::size_t nbytes;
  std::uintptr_t pages, pages_end;
  int open = 0;  ///< how many running operations have it open
  bool freed = false;
};

class Arena {
 public:
  Arena();
  /// Address of `nbytes` of fresh poison, aligned to 256 bytes; 0 when the arena is used up.
  Pointer allocate(std::size_t nbytes, Device device, u64 context_id);
  /// Close for good. The address never comes back.
  void free(Allocation& allocation);
  void forget_all();

  /// The allocation that holds all of [address, address + nbytes), freed or not.
  Allocation* find(Pointer address, std::size_t nbytes);
  Allocation* by_number(u64 number);
  bool contains(std::uintptr_t address) const { return address - base_ < size_; }
  /// True if any byte of the range lies in the arena.
  bool overlaps(std::uintptr_t address, std::size_t nbytes) const {
    return address < base_ + size_ && address + nbytes > base_;
  }

  void open(Allocation& allocation);
  void close(Allocation& allocation);

  std::int64_t live_bytes() const;
  /// Turn what the fault handler noted into violations, and close the pages it opened.
  void collect_touches(Report& report);
  std::map<std::uintptr_t, Allocation>& all() { return by_address_; }

 private:
  std::uintptr_t base_ = 0, next_ = 0;
  std::size_t size_ = 0;
  u64 last_number_ = 0;
  std::map<std::uintptr_t, Allocation> by_address_;
};

/// Set while the calling thread runs a device operation: its touches are the device's.
bool& on_device();

}  // namespace fake
