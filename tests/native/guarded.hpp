// Memory for kernels that must leave alone what lies around their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "support.hpp"

namespace ferry::test {

// Rows of `count` items at any step, with random bytes in, between and around them.
class RowMemory {
 public:
  RowMemory(Random& random, std::int64_t itemsize, std::int64_t step, std::int64_t count) : step_(step) {
    const std::int64_t span = count > 0 ? (count - 1) * std::abs(step) + itemsize : 0;
    bytes_.resize(static_cast<std::size_t>(span + 167) / 8 * 8);
    for (std::size_t at = 0; at < bytes_.size(); at += 8) {
      const std::uint64_t bits = random.bits();
      std::memcpy(bytes_.data() + at, &bits, 8);
    }
    start_ = random.between(64, 95) + (step < 0 && count > 0 ? (count - 1) * -step : 0);
  }

  [[nodiscard]] std::byte* row() { return bytes_.data() + start_; }
  [[nodiscard]] std::byte* item(std::int64_t i) { return row() + i * step_; }
  [[nodiscard]] std::int64_t step() const { return step_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::int64_t step_;
  std::int64_t start_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace ferry::test
