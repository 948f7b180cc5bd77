// Tells whether a cast changed values, a chunk at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"
#include "host/kernels/kernels.hpp"

namespace ferry {

// For pairs of dtypes that have a cast kernel, both ways.
class ValueCheck {
 public:
  static constexpr std::int64_t most = 512;  // elements at a time

  ValueCheck(DType to, DType from) noexcept;

  // Are `count` packed items of `to` the same numbers as those of `from` that were cast to them?
  [[nodiscard]] bool operator()(const std::byte* to, const std::byte* from, std::int64_t count) noexcept;

 private:
  // One side of the comparison: real numbers, or the real parts of complex ones.
  struct Side {
    DType dtype;
    std::int64_t itemsize;
    std::int64_t step;
  };
  // Integers in [low, low + span], modulo the size of a word.
  struct Range {
    CountWords beyond = nullptr;  // null: no integer is out of it
    std::uint64_t low = 0;
    std::uint64_t span = 0;
  };

  void choose_comparison() noexcept;
  [[nodiscard]] static Range range(DType dtype, std::uint64_t low, std::uint64_t high) noexcept;

  Side to_;
  Side from_;
  std::int64_t parts_ = 1;          // of an element that are compared
  bool imaginary_is_zero_ = false;  // must be, in the source
  bool compares_ = true;            // else the ranges say all
  DType common_ =
      DType::float64;            // holds the values of both sides, or those of one and each of the other that survives
  MoveRow to_common_ = nullptr;  // null: already is
  MoveRow from_common_ = nullptr;
  Range to_range_;
  Range from_range_;
  alignas(64) std::array<std::byte, static_cast<std::size_t>(2 * most) * 8U> to_values_;
  alignas(64) std::array<std::byte, static_cast<std::size_t>(2 * most) * 8U> from_values_;
};

}  // namespace ferry
