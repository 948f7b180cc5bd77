// Reads a ring of slots that the replays of a graph fill, each behind the other, while they go on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry {

// Where the slots lie, in host memory: `slots` gpu::SlotHeaders, and as many payloads at this pitch. Payloads are
// aligned to 8 bytes.
struct ReplaySlots {
  std::byte* headers = nullptr;
  std::byte* payloads = nullptr;
  std::size_t pitch = 0;
  std::uint64_t slots = 0;
};

// Not for two threads at once. It calls no device and never waits.
class ReplayReader {
 public:
  explicit ReplayReader(const ReplaySlots& slots) noexcept : slots_(slots) {}

  // Has a replay come that was not taken? Any thread may ask beside one that takes.
  [[nodiscard]] bool has_next() const noexcept;
  // Copies the values of the oldest replay that was not taken and is there as a whole: its number, from 1 on; 0 where
  // there is none. Those that were overwritten before are passed over, and counted. `values` fit into the pitch.
  [[nodiscard]] std::uint64_t take(std::span<std::byte> values) noexcept;
  [[nodiscard]] std::uint64_t gaps() const noexcept { return gaps_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::byte* header(std::uint64_t number) const noexcept;
  [[nodiscard]] bool copy_whole(std::uint64_t number, std::span<std::byte> values) const noexcept;

  ReplaySlots slots_;
  std::atomic<std::uint64_t> next_{1};
  std::atomic<std::uint64_t> gaps_{0};
};

}  // namespace ferry
