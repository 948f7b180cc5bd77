// A short list of 64-bit numbers, one per axis, without heap memory.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace ferry {

inline constexpr int max_ndim = 64;  // NumPy 2's limit

class Extents {
 public:
  Extents() noexcept = default;
  explicit Extents(int size, std::int64_t fill = 0) noexcept : size_(size) {
    assert(size >= 0 && size <= max_ndim);
    std::fill_n(values_.begin(), size, fill);
  }
  explicit Extents(std::span<const std::int64_t> values) noexcept : size_(static_cast<int>(values.size())) {
    assert(values.size() <= static_cast<std::size_t>(max_ndim));
    std::copy(values.begin(), values.end(), values_.begin());
  }
  Extents(std::initializer_list<std::int64_t> values) noexcept
      : Extents(std::span<const std::int64_t>(values.begin(), values.size())) {}

  Extents(const Extents& other) noexcept : size_(other.size_) { copy_from(other); }
  Extents& operator=(const Extents& other) noexcept {
    size_ = other.size_;
    copy_from(other);
    return *this;
  }

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::int64_t* data() noexcept { return values_.data(); }
  [[nodiscard]] const std::int64_t* data() const noexcept { return values_.data(); }
  [[nodiscard]] std::int64_t& operator[](int axis) noexcept { return values_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] std::int64_t operator[](int axis) const noexcept { return values_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] const std::int64_t* begin() const noexcept { return values_.data(); }
  [[nodiscard]] const std::int64_t* end() const noexcept { return values_.data() + size_; }

  void push_back(std::int64_t value) noexcept {
    assert(size_ < max_ndim);
    values_[static_cast<std::size_t>(size_++)] = value;
  }
  void resize(int size) noexcept { size_ = size; }

  [[nodiscard]] friend bool operator==(const Extents& a, const Extents& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void copy_from(const Extents& other) noexcept { std::copy_n(other.values_.begin(), size_, values_.begin()); }

  int size_ = 0;
  std::array<std::int64_t, max_ndim> values_;  // only the first size_ are set
};

}  // namespace ferry
