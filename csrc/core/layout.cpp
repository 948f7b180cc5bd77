#include "core/layout.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/checked_math.hpp"

namespace ferry {
namespace {

struct Axis {
  std::int64_t extent;
  std::int64_t step;  // absolute stride
};

// Axes that matter for addresses, fastest first.
struct SortedAxes {
  std::array<Axis, max_ndim> axes;
  int size = 0;
};

SortedAxes sorted_axes(const Layout& layout) noexcept {
  SortedAxes sorted;
  for (int i = 0; i < layout.ndim(); ++i) {
    if (layout.shape[i] != 1) {
      sorted.axes[static_cast<std::size_t>(sorted.size++)] = {layout.shape[i], std::abs(layout.strides[i])};
    }
  }
  std::stable_sort(sorted.axes.begin(), sorted.axes.begin() + sorted.size,
                   [](const Axis& a, const Axis& b) { return a.step < b.step; });
  return sorted;
}

bool has_no_elements(const Layout& layout) noexcept {
  return std::find(layout.shape.begin(), layout.shape.end(), 0) != layout.shape.end();
}

// Is the layout packed when the axes are visited from `first` in direction `direction` (fastest axis first)?
bool is_packed(const Layout& layout, int first, int direction) noexcept {
  if (has_no_elements(layout)) return true;
  std::int64_t expected = layout.itemsize;
  int axis = first;
  for (int i = 0; i < layout.ndim(); ++i, axis += direction) {
    if (layout.shape[axis] == 1) continue;
    if (layout.strides[axis] != expected) return false;
    expected *= layout.shape[axis];
  }
  return true;
}

// Only the strides of an empty shape can overflow, and no address depends on those.
std::int64_t grown(std::int64_t step, std::int64_t extent) noexcept {
  return checked_mul(step, std::max<std::int64_t>(extent, 1)).value_or(step);
}

}  // namespace

std::optional<std::int64_t> element_count(const Extents& shape) noexcept {
  std::int64_t count = 1;
  bool overflow = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) return 0;
  }
  for (const std::int64_t extent : shape) {
    const auto product = checked_mul(count, extent);
    if (!product) overflow = true;
    count = product.value_or(0);
  }
  if (overflow) return std::nullopt;
  return count;
}

Extents contiguous_strides(const Extents& shape, std::int64_t itemsize, Order order) noexcept {
  const int ndim = shape.size();
  Extents strides(ndim);
  std::int64_t step = itemsize;
  for (int i = 0; i < ndim; ++i) {
    const int axis = order == Order::fortran ? i : ndim - 1 - i;
    strides[axis] = step;
    step = grown(step, shape[axis]);
  }
  return strides;
}

bool is_c_contiguous(const Layout& layout) noexcept { return is_packed(layout, layout.ndim() - 1, -1); }

bool is_f_contiguous(const Layout& layout) noexcept { return is_packed(layout, 0, 1); }

bool is_dense(const Layout& layout) noexcept {
  if (has_no_elements(layout)) return true;
  const SortedAxes sorted = sorted_axes(layout);
  std::int64_t expected = layout.itemsize;
  for (int i = 0; i < sorted.size; ++i) {
    const Axis& axis = sorted.axes[static_cast<std::size_t>(i)];
    if (axis.step != expected) return false;
    expected *= axis.extent;
  }
  return true;
}

std::optional<Pitch> pitch(const Layout& layout) noexcept {
  if (has_no_elements(layout)) return std::nullopt;
  const SortedAxes sorted = sorted_axes(layout);
  Pitch result{1, layout.itemsize, layout.itemsize};
  int i = 0;
  while (i < sorted.size && sorted.axes[static_cast<std::size_t>(i)].step == result.row_nbytes) {
    result.row_nbytes *= sorted.axes[static_cast<std::size_t>(i++)].extent;
  }
  result.step = result.row_nbytes;
  if (i == 0 && sorted.size > 0) return std::nullopt;  // no contiguous row
  for (bool first = true; i < sorted.size; ++i, first = false) {
    const Axis& axis = sorted.axes[static_cast<std::size_t>(i)];
    if (first) result.step = axis.step;
    if (axis.step < result.row_nbytes || axis.step != result.step * result.rows) return std::nullopt;
    result.rows *= axis.extent;
  }
  return result;
}

ByteSpan span(const Layout& layout) noexcept {
  if (has_no_elements(layout)) return {};
  ByteSpan bytes{0, layout.itemsize};
  for (int i = 0; i < layout.ndim(); ++i) {
    const std::int64_t reach = (layout.shape[i] - 1) * layout.strides[i];
    (reach < 0 ? bytes.low : bytes.high) += reach;
  }
  return bytes;
}

bool may_overlap_itself(const Layout& layout) noexcept {
  if (has_no_elements(layout)) return false;
  const SortedAxes sorted = sorted_axes(layout);
  std::int64_t reach = layout.itemsize;  // bytes covered by the faster axes
  for (int i = 0; i < sorted.size; ++i) {
    const Axis& axis = sorted.axes[static_cast<std::size_t>(i)];
    if (axis.step < reach) return true;
    reach += (axis.extent - 1) * axis.step;
  }
  return false;
}

Extents packed_strides(const Layout& source, Order order, std::int64_t itemsize) noexcept {
  const int ndim = source.ndim();
  const bool fortran_only = is_f_contiguous(source) && !is_c_contiguous(source);
  if (order == Order::fortran || (order != Order::c && fortran_only)) {
    return contiguous_strides(source.shape, itemsize, Order::fortran);
  }
  if (order != Order::keep || ndim <= 1 || is_c_contiguous(source)) {
    return contiguous_strides(source.shape, itemsize, Order::c);
  }
  // NumPy's rule for "K": axes by falling absolute stride, equal strides stay in C order.
  std::array<int, max_ndim> axes;
  for (int i = 0; i < ndim; ++i) axes[static_cast<std::size_t>(i)] = i;
  std::stable_sort(axes.begin(), axes.begin() + ndim,
                   [&](int a, int b) { return std::abs(source.strides[a]) > std::abs(source.strides[b]); });
  Extents strides(ndim);
  std::int64_t step = itemsize;
  for (int i = ndim - 1; i >= 0; --i) {
    const int axis = axes[static_cast<std::size_t>(i)];
    strides[axis] = step;
    step = grown(step, source.shape[axis]);
  }
  return strides;
}

Extents element_strides(const Layout& layout) noexcept {
  Extents strides(layout.ndim());
  const bool contiguous = is_c_contiguous(layout);
  std::int64_t packed = 1;
  for (int i = layout.ndim() - 1; i >= 0; --i) {
    const std::int64_t extent = layout.shape[i];
    strides[i] = contiguous || extent <= 1 ? packed : layout.strides[i] / layout.itemsize;
    packed = grown(contiguous ? packed : strides[i], extent);
  }
  return strides;
}

bool satisfies(const Layout& layout, Order order) noexcept {
  switch (order) {
    case Order::c:
      return is_c_contiguous(layout);
    case Order::fortran:
      return is_f_contiguous(layout);
    default:
      return true;
  }
}

}  // namespace ferry
