#include "transfer/ordered_layouts.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace ferry {

OrderedLayouts OrderedLayouts::slice(int axis, std::int64_t first, std::int64_t count) const {
  OrderedLayouts part = *this;
  part.device_offset += first * device.strides[axis];
  part.host_offset += first * host.strides[axis];
  part.device.shape[axis] = part.host.shape[axis] = count;
  return part;
}

OrderedLayouts ordered_layouts(const Layout& device, const Layout& host, OrderedBy by) {
  const Layout& lead = by == OrderedBy::device ? device : host;
  std::array<int, max_ndim> axes;
  int count = 0;
  for (int i = 0; i < lead.ndim(); ++i) {
    if (lead.shape[i] != 1) axes[static_cast<std::size_t>(count++)] = i;
  }
  std::stable_sort(axes.begin(), axes.begin() + count,
                   [&](int a, int b) { return std::abs(lead.strides[a]) > std::abs(lead.strides[b]); });
  OrderedLayouts result{{Extents(count), Extents(count), device.itemsize},
                        {Extents(count), Extents(count), host.itemsize}};
  for (int i = 0; i < count; ++i) {
    const int axis = axes[static_cast<std::size_t>(i)];
    const bool backwards = lead.strides[axis] < 0;
    const std::int64_t last = lead.shape[axis] - 1;
    result.device.shape[i] = result.host.shape[i] = lead.shape[axis];
    result.device.strides[i] = backwards ? -device.strides[axis] : device.strides[axis];
    result.host.strides[i] = backwards ? -host.strides[axis] : host.strides[axis];
    if (!backwards) continue;
    result.device_offset += last * device.strides[axis];
    result.host_offset += last * host.strides[axis];
  }
  return result;
}

}  // namespace ferry
