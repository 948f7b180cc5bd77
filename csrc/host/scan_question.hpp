// What a scan asks of each item, put as a question about its bits that a kernel can answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "core/tensor_ref.hpp"
#include "host/kernels/kernels.hpp"

namespace ferry {

class ScanQuestion {
 public:
  // Is it NaN or infinite? Nothing when no value of the dtype is. Marks and byte order are the tensor's.
  [[nodiscard]] static std::optional<ScanQuestion> nonfinite(const TensorRef& tensor, const Kernels& kernels);

  // Does it lie outside of [low, high]? Not for complex numbers.
  [[nodiscard]] static ScanQuestion outside(const TensorRef& tensor, double low, double high, const Kernels& kernels);

  // How many elements of `count` items, `step` bytes apart, answer yes?
  [[nodiscard]] std::int64_t count(const std::byte* items, std::int64_t step, std::int64_t count) const noexcept;

  // Which element of an item is the first that answers yes? At least one does.
  [[nodiscard]] std::int64_t first_in_item(const std::byte* item) const noexcept;

 private:
  ScanQuestion(const TensorRef& tensor, const Kernels& kernels) noexcept;

  template <class IsWanted>
  void mark_bytes(const TensorRef& tensor, IsWanted&& is_wanted);
  void ask_integers(const TensorRef& tensor, double low, double high, const Kernels& kernels);
  void ask_floats(const TensorRef& tensor, double low, double high, const Kernels& kernels);
  void ask(CountWords words, std::uint64_t a, std::uint64_t b) noexcept;

  [[nodiscard]] std::int64_t count_packed(const std::byte* items, std::int64_t count) const noexcept;
  [[nodiscard]] std::int64_t count_pairs(const std::byte* items, std::int64_t count) const noexcept;

  std::int64_t itemsize_;
  std::int64_t per_item_;
  std::int64_t words_per_item_ = 1;
  MoveRow pack_;                // to a row of packed items in the byte order that the question is put in
  bool packs_always_ = false;   // also a row that is packed already
  CountWords words_ = nullptr;  // null: by `marks_`
  std::uint64_t a_ = 0;
  std::uint64_t b_ = 0;
  SumMarks sum_marks_;
  std::array<std::uint8_t, 256> marks_;  // for items of a byte: how many of its elements answer yes
};

}  // namespace ferry
