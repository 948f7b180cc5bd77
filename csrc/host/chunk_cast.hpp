// Casts rows by the kernels, a chunk at a time that stays in the first cache: byte swapping, conj and neg at either
// end, and a check that every value survived.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/tensor_ref.hpp"
#include "host/kernels/kernels.hpp"
#include "host/value_check.hpp"

namespace ferry {

// Not to be shared between threads.
class ChunkCast {
 public:
  ChunkCast(const TensorRef& destination, const TensorRef& source) noexcept;

  // False for dtypes, or marks of a dtype, that have no kernels.
  [[nodiscard]] bool is_possible() const noexcept { return cast_ != nullptr; }

  // With `check`, tells whether every value survived.
  bool operator()(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                  std::int64_t count, bool check) noexcept;

 private:
  // Between what memory holds and the values it stands for; either may be null.
  struct Marks {
    MoveRow swap = nullptr;
    MoveRow flip = nullptr;
    bool possible = true;
    [[nodiscard]] bool any() const noexcept { return swap != nullptr || flip != nullptr; }
  };
  struct Row {
    const std::byte* at;
    std::int64_t step;
  };

  [[nodiscard]] static Marks marks_of(const TensorRef& tensor) noexcept;
  [[nodiscard]] Row values_of(Row memory, std::int64_t count, bool packed) noexcept;
  void put_values(std::byte* to, std::int64_t to_step, std::int64_t count) noexcept;

  std::int64_t to_itemsize_;
  std::int64_t from_itemsize_;
  Marks to_marks_;
  Marks from_marks_;
  MoveRow cast_ = nullptr;
  bool can_change_;
  ValueCheck check_;
  alignas(64) std::array<std::byte, static_cast<std::size_t>(ValueCheck::most) * 16U> from_values_;
  alignas(64) std::array<std::byte, static_cast<std::size_t>(ValueCheck::most) * 16U> to_values_;
};

}  // namespace ferry
