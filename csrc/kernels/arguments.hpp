// What several kernels' arguments have in common. An argument struct is what both sides of a launch agree on: plain,
// with members of fixed width.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/divisor.hpp"

namespace ferry::gpu {

using Address = std::uint64_t;  // of the device; mapped host memory by the device's address

inline constexpr std::uint32_t max_argument_nbytes = 4096;  // what every driver and device takes

template <class Args>
inline constexpr bool is_argument =
    std::is_trivially_copyable_v<Args> && std::is_standard_layout_v<Args> && sizeof(Args) <= max_argument_nbytes;

// How the host learns that a launch has stored everything: *flag becomes `sequence` after all data. See signal.cuh for
// the order.
struct Signal {
  Address flag;    // 8 bytes, usually in mapped memory
  Address ticket;  // 4 bytes of device memory, 0 before and after; for one stream, or launches in an order
  std::uint64_t sequence;
};

// Of a launch that a graph may repeat: which slot it fills, and the number that it gives it, come from device memory.
struct Counter {
  std::uint64_t sequence;  // of the last launch; 0 before the first
  std::uint32_t ticket;    // 0 between launches
  std::uint32_t unused;
};

// A slot is filled while begin == end does not hold. Read `end` (acquire), the payload, then `begin` (behind an acquire
// fence): both are the wanted number, or what was read is torn, or of another launch.
struct SlotHeader {
  std::uint64_t begin;
  std::uint64_t end;
};

struct Slots {
  Address counter;       // a Counter in device memory
  Address headers;       // a SlotHeader each, zeroed before
  Address payloads;      // launch n (from 1) fills the one with index (n - 1) % slots
  std::uint64_t pitch;   // bytes from one payload to the next
  WideDivisor by_count;  // slots
};

}  // namespace ferry::gpu
