// Why a conversion has to copy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ferry {

// Everything that makes sharing impossible; several may hold at once.
enum class Cause : std::uint32_t {
  requested = 1U << 0,
  destination = 1U << 1,
  no_memory = 1U << 2,
  conjugated = 1U << 3,
  negated = 1U << 4,
  byte_order = 1U << 5,
  cast = 1U << 6,
  unpack = 1U << 7,
  pack = 1U << 8,
  widen = 1U << 9,
  order = 1U << 10,
  read_only = 1U << 11,
  negative_stride = 1U << 12,
  misaligned = 1U << 13,
  overlapping = 1U << 14,
  held = 1U << 15,
};

class Causes {
 public:
  void add(Cause cause, bool condition = true) noexcept {
    if (condition) bits_ |= static_cast<std::uint32_t>(cause);
  }
  [[nodiscard]] bool has(Cause cause) const noexcept { return (bits_ & static_cast<std::uint32_t>(cause)) != 0; }
  [[nodiscard]] bool any() const noexcept { return bits_ != 0; }
  [[nodiscard]] bool only(Cause cause) const noexcept { return bits_ == static_cast<std::uint32_t>(cause); }
  // One clause each, in the order above.
  [[nodiscard]] std::vector<std::string> explain() const;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace ferry
