// Bytes of images, channels together (HWC), to planes of floats (CHW), scaled and shifted.
#pragma once

#include "kernels/arguments.hpp"
#include "kernels/divisor.hpp"

namespace ferry::gpu {

inline constexpr std::uint32_t max_channels = 4;
inline constexpr std::uint32_t pixels_at_once = 4;

// value * scale + shift in double, rounded once; in parts as host/kernels/pixel_map.hpp has them.
struct ChannelMap {
  double scale;
  double shift;
  float scale_high;
  float scale_low;
  float shift_high;
  float shift_low;
  std::uint32_t in_parts;  // float32 only
  std::uint32_t unused;
};

// Columns of the destination lie side by side; its addresses are multiples of the itemsize.
struct ImageArgs {
  Address to;
  Address from;
  std::uint64_t images;
  WideDivisor by_height;
  std::uint64_t width;
  WideDivisor by_groups;  // of pixels_at_once pixels, in a row
  std::int64_t to_image;  // steps in bytes, of any sign
  std::int64_t to_channel;
  std::int64_t to_row;
  std::int64_t from_image;
  std::int64_t from_row;
  std::int64_t from_column;
  std::int64_t from_channel[max_channels];  // where in a pixel the values of each plane are
  std::uint32_t channels;
  std::uint32_t aligned;  // 1 where four pixels are loaded by words and stored at once
  ChannelMap maps[max_channels];
};
static_assert(is_argument<ImageArgs>);

// Fills what follows from the rest: the divisors and `aligned`.
constexpr ImageArgs image_args(ImageArgs args, std::uint64_t height, std::uint32_t to_itemsize) noexcept {
  args.by_height = wide_divisor_of(height == 0 ? 1 : height);
  const std::uint64_t groups = (args.width + pixels_at_once - 1) / pixels_at_once;
  args.by_groups = wide_divisor_of(groups == 0 ? 1 : groups);
  if (height == 0 || groups == 0) args.images = 0;
  const std::int64_t column = args.from_column;
  bool aligned = column == 1 || column == 3 || column == 4;
  for (std::uint32_t c = 0; c < args.channels; ++c) {
    aligned = aligned && args.from_channel[c] >= 0 && args.from_channel[c] < column;
  }
  const auto from = args.from | static_cast<std::uint64_t>(args.from_image | args.from_row);
  const auto to = args.to | static_cast<std::uint64_t>(args.to_image | args.to_row | args.to_channel);
  args.aligned = aligned && from % 4 == 0 && to % (std::uint64_t{pixels_at_once} * to_itemsize) == 0 ? 1 : 0;
  return args;
}

}  // namespace ferry::gpu
