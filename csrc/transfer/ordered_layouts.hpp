// Two layouts of one shape with their axes in the order in which one of them lies in memory.
#pragma once

#include <cstdint>

#include "core/layout.hpp"

namespace ferry {

// Slowest axis first, all of them forwards in the layout that gave the order; axes of one element are dropped. Offsets
// are of the first element, in bytes from where it was.
struct OrderedLayouts {
  Layout device;
  Layout host;
  std::int64_t device_offset = 0;
  std::int64_t host_offset = 0;

  // `count` elements of `axis` from `first` on.
  [[nodiscard]] OrderedLayouts slice(int axis, std::int64_t first, std::int64_t count) const;
};

enum class OrderedBy : std::uint8_t { device, host };

// Axes that repeat elements where the order comes from are last.
[[nodiscard]] OrderedLayouts ordered_layouts(const Layout& device, const Layout& host, OrderedBy by);

}  // namespace ferry
