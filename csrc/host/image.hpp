// Images between pixels that lie together (HWC) and planes of one channel each (CHW), scaled and shifted on the way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.hpp"
#include "host/kernels/pixel_map.hpp"

namespace ferry {

inline constexpr std::size_t max_channels = 4;

// Where the values of one image lie. Steps and offsets are in bytes and may be negative.
struct ImageView {
  std::byte* data = nullptr;
  std::array<std::int64_t, max_channels> channels{};  // offset of each
  std::int64_t row_step = 0;
  std::int64_t column_step = 0;
  bool byte_swapped = false;
};

struct ImageCopy {
  ImageView to;
  ImageView from;
};

// What all images of one call have in common. Destinations are in native byte order.
struct ImageFormat {
  DType to;
  DType from;
  std::int64_t height;
  std::int64_t width;
  std::span<const PixelMap> maps;  // one for each channel of the destination, at most max_channels
};

// Is there a way from one dtype to the other?
[[nodiscard]] bool converts_images(DType to, DType from) noexcept;

// to[c, y, x] = from[c, y, x] * maps[c].scale + maps[c].shift for every image. No destination overlaps anything else.
void convert_images(std::span<const ImageCopy> images, const ImageFormat& format);

}  // namespace ferry
