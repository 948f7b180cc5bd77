// Walks one or several layouts of equal shape row by row. A row is one axis; the axes above it are counted like an
// odometer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "core/layout.hpp"

namespace ferry {

enum class WalkOrder : std::uint8_t {
  fastest,            // axes sorted by the first operand's strides: the index of an element is not known
  c_order,            // rows come in C order, row r begins at flat index r * row_extent()
  fastest_keep_last,  // as `fastest`, but the last axis is the row and is walked upwards
  c_order_keep_last,  // as `c_order`, but the last axis alone is the row
};

template <std::size_t N>
class Walk {
 public:
  using Steps = std::array<std::int64_t, N>;
  using Pointers = std::array<std::byte*, N>;

  // `shape` has no zero extent; strides[k] are those of operand k, which starts at data[k].
  Walk(const Extents& shape, const std::array<const Extents*, N>& strides, const Pointers& data, WalkOrder order)
      : base_(data) {
    const bool keep_last = order == WalkOrder::fastest_keep_last || order == WalkOrder::c_order_keep_last;
    const bool sort = order == WalkOrder::fastest || order == WalkOrder::fastest_keep_last;
    const int last = shape.size() - 1;
    for (int axis = last; axis >= 0; --axis) {
      const bool kept = keep_last && axis == last;
      if (shape[axis] == 1 && !kept) continue;
      Axis next{shape[axis], {}};
      for (std::size_t k = 0; k < N; ++k) next.steps[k] = (*strides[k])[axis];
      if (sort && !kept) fold(next);
      axes_[size_++] = next;
    }
    if (size_ == 0) axes_[size_++] = Axis{1, {}};
    const std::size_t fixed = keep_last ? 1 : 0;
    if (sort) sort_axes(fixed);
    merge(fixed);
  }

  struct Axis {
    std::int64_t extent;
    Steps steps;
  };

  // Fastest first; at least one.
  [[nodiscard]] std::span<const Axis> axes() const noexcept { return {axes_.data(), size_}; }
  [[nodiscard]] const Pointers& base() const noexcept { return base_; }
  [[nodiscard]] std::int64_t count() const noexcept {
    std::int64_t product = 1;
    for (std::size_t axis = 0; axis < size_; ++axis) product *= axes_[axis].extent;
    return product;
  }
  [[nodiscard]] std::int64_t row_extent() const noexcept { return axes_[0].extent; }
  [[nodiscard]] const Steps& row_steps() const noexcept { return axes_[0].steps; }

  // Calls visit(pointers) for each row until it returns false.
  template <class Visit>
  void for_each_row(Visit&& visit) const {
    Pointers at = base_;
    std::array<std::int64_t, max_ndim> index{};
    while (visit(static_cast<const Pointers&>(at))) {
      std::size_t axis = 1;
      for (; axis < size_; ++axis) {
        if (++index[axis] < axes_[axis].extent) {
          move(at, axis, 1);
          break;
        }
        move(at, axis, 1 - axes_[axis].extent);
        index[axis] = 0;
      }
      if (axis >= size_) return;
    }
  }

 private:
  // Turns an axis round so that the first operand that moves along it moves upwards.
  void fold(Axis& axis) noexcept {
    const auto moving = std::find_if(axis.steps.begin(), axis.steps.end(), [](std::int64_t step) { return step != 0; });
    if (moving == axis.steps.end() || *moving > 0) return;
    for (std::size_t k = 0; k < N; ++k) {
      base_[k] += (axis.extent - 1) * axis.steps[k];
      axis.steps[k] = -axis.steps[k];
    }
  }

  // An insertion sort: it is stable, and the standard's stable sort would take heap memory.
  void sort_axes(std::size_t fixed) noexcept {
    const auto faster = [](const Axis& a, const Axis& b) {
      for (std::size_t k = 0; k < N; ++k) {
        const std::int64_t left = std::abs(a.steps[k]);
        const std::int64_t right = std::abs(b.steps[k]);
        if (left != right) return left < right;
      }
      return false;
    };
    const auto first = axes_.begin() + fixed;
    const auto last = axes_.begin() + size_;
    for (auto next = first; next != last; ++next) {
      std::rotate(std::upper_bound(first, next, *next, faster), next, next + 1);
    }
  }

  void merge(std::size_t fixed) noexcept {
    std::size_t kept = fixed;
    for (std::size_t i = fixed; i < size_; ++i) {
      if (kept > fixed && continues(axes_[kept - 1], axes_[i])) {
        axes_[kept - 1].extent *= axes_[i].extent;
      } else {
        axes_[kept++] = axes_[i];
      }
    }
    size_ = kept;
  }

  [[nodiscard]] static bool continues(const Axis& inner, const Axis& outer) noexcept {
    for (std::size_t k = 0; k < N; ++k) {
      if (outer.steps[k] != inner.steps[k] * inner.extent) return false;
    }
    return true;
  }

  void move(Pointers& at, std::size_t axis, std::int64_t count) const noexcept {
    for (std::size_t k = 0; k < N; ++k) at[k] += count * axes_[axis].steps[k];
  }

  Pointers base_;
  std::array<Axis, static_cast<std::size_t>(max_ndim)> axes_;  // fastest first
  std::size_t size_ = 0;
};

}  // namespace ferry
