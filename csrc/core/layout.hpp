// Shape and strides, and the questions one asks of them. Strides are in bytes everywhere in C++.
#pragma once

#include <cstdint>
#include <optional>

#include "core/extents.hpp"

namespace ferry {

enum class Order : std::uint8_t { keep, c, fortran, any };

struct Layout {
  Extents shape;
  Extents strides;  // bytes
  std::int64_t itemsize = 1;

  [[nodiscard]] int ndim() const noexcept { return shape.size(); }
};

// Bytes touched, relative to the data pointer: [low, high). Both 0 when there are no elements.
struct ByteSpan {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Equal contiguous rows at one fixed step.
struct Pitch {
  std::int64_t rows = 0;
  std::int64_t row_nbytes = 0;
  std::int64_t step = 0;
};

// Number of elements; none when the product does not fit in 64 bits or an extent is negative.
[[nodiscard]] std::optional<std::int64_t> element_count(const Extents& shape) noexcept;

// Strides of a packed block in C order (last axis fastest) or Fortran order.
[[nodiscard]] Extents contiguous_strides(const Extents& shape, std::int64_t itemsize, Order order = Order::c) noexcept;

// As NumPy defines the flags: axes of size 1 do not count, and an empty array is both.
[[nodiscard]] bool is_c_contiguous(const Layout& layout) noexcept;
[[nodiscard]] bool is_f_contiguous(const Layout& layout) noexcept;

// The elements fill one block without holes, in some order of the axes; negative strides count as positive ones.
[[nodiscard]] bool is_dense(const Layout& layout) noexcept;

[[nodiscard]] std::optional<Pitch> pitch(const Layout& layout) noexcept;

[[nodiscard]] ByteSpan span(const Layout& layout) noexcept;

// May two index tuples reach the same byte? Exact for slices, permutations and expansions; "yes" in doubt.
[[nodiscard]] bool may_overlap_itself(const Layout& layout) noexcept;

// Strides of the new packed block that a copy in `order` fills, by NumPy's rules for order "K", "C", "F" and "A".
[[nodiscard]] Extents packed_strides(const Layout& source, Order order, std::int64_t itemsize) noexcept;

// Strides in elements, as DLPack counts them; those of axes that no address depends on become packed ones. The other
// strides must be multiples of the item size.
[[nodiscard]] Extents element_strides(const Layout& layout) noexcept;

// Does `layout` already satisfy `order`, so that no packing is needed? "K" and "A" accept anything.
[[nodiscard]] bool satisfies(const Layout& layout, Order order) noexcept;

}  // namespace ferry
