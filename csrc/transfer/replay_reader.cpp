#include "transfer/replay_reader.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/arguments.hpp"

namespace ferry {
namespace {

std::uint64_t load(std::byte* word, std::memory_order order) noexcept {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(word)).load(order);
}

}  // namespace

bool ReplayReader::has_next() const noexcept {
  const std::uint64_t next = next_.load(std::memory_order_relaxed);
  return load(header(next) + offsetof(gpu::SlotHeader, end), std::memory_order_acquire) >= next;
}

std::uint64_t ReplayReader::take(std::span<std::byte> values) noexcept {
  while (has_next()) {
    const std::uint64_t number = next_.load(std::memory_order_relaxed);
    next_.store(number + 1, std::memory_order_relaxed);
    if (copy_whole(number, values)) return number;
    gaps_.fetch_add(1, std::memory_order_relaxed);
  }
  return 0;
}

std::byte* ReplayReader::header(std::uint64_t number) const noexcept {
  return slots_.headers + (number - 1) % slots_.slots * sizeof(gpu::SlotHeader);
}

// The device may be writing the next lap's values: words are loaded as atomics, and count for nothing then. Loading
// them with acquire puts them before `begin`, as a fence would.
bool ReplayReader::copy_whole(std::uint64_t number, std::span<std::byte> values) const noexcept {
  std::byte* const numbers = header(number);
  if (load(numbers + offsetof(gpu::SlotHeader, end), std::memory_order_acquire) != number) return false;
  std::byte* const payload = slots_.payloads + (number - 1) % slots_.slots * slots_.pitch;
  for (std::size_t done = 0; done < values.size(); done += sizeof(std::uint64_t)) {
    const std::uint64_t word = load(payload + done, std::memory_order_acquire);
    std::memcpy(values.data() + done, &word, std::min(sizeof word, values.size() - done));
  }
  return load(numbers + offsetof(gpu::SlotHeader, begin), std::memory_order_relaxed) == number;
}

}  // namespace ferry
