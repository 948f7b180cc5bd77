// Part of one row of an image, through a first-level cache's worth of memory.
#pragma once

#include <array>
#include <optional>

#include "host/image.hpp"
#include "host/kernels/kernels.hpp"

namespace ferry {

// The loop between two dtypes, where values of 16 bits are float32 before, or after; null where there is none.
[[nodiscard]] MapRow map_between(DType to, DType from) noexcept;

class ImageRow {
 public:
  // `flat`: all channels are one, and a pixel is a value. `stream` sends planes past the caches.
  ImageRow(const ImageFormat& format, bool flat, bool stream) noexcept;

  // So many pixels fit.
  [[nodiscard]] static std::int64_t longest(const ImageFormat& format) noexcept;

  // The image that the next calls of `convert` are about.
  void begin(const ImageCopy& image) noexcept;

  void convert(std::int64_t y, std::int64_t first, std::int64_t count) noexcept;

 private:
  static constexpr std::int64_t plane_nbytes = 2048;
  static constexpr std::int64_t plane_stride = plane_nbytes + 64;  // planes do not fall on the same cache sets

  struct alignas(64) Planes {
    std::array<std::byte, max_channels* static_cast<std::size_t>(plane_stride)> bytes;
    std::byte* operator[](std::size_t channel) noexcept {
      return bytes.data() + static_cast<std::int64_t>(channel) * plane_stride;
    }
  };
  using Pointers = std::array<const std::byte*, max_channels>;

  // Channels that lie side by side in a pixel, in any order.
  struct Pixel {
    std::int64_t offset;                              // of the first in memory
    std::array<std::size_t, max_channels> positions;  // of each channel
  };
  [[nodiscard]] std::optional<Pixel> pixel_of(const ImageView& view, std::int64_t itemsize) const noexcept;

  Pointers planes_of(const std::byte* first, std::int64_t count) noexcept;
  void map_plane(std::byte* to, const std::byte* from, std::int64_t count, const PixelMap& map) noexcept;
  void write_plane(std::byte* to, const std::byte* from, std::int64_t count, const PixelMap& map) noexcept;

  const ImageFormat& format_;
  std::int64_t to_itemsize_;
  std::int64_t from_itemsize_;
  std::size_t channels_;
  bool flat_;
  bool stream_;
  MoveRow widen_ = nullptr;   // from float16 and bfloat16
  MoveRow narrow_ = nullptr;  // to them
  MapRow map_;
  ImageView to_;
  ImageView from_;
  std::optional<Pixel> to_pixel_;
  std::optional<Pixel> from_pixel_;
  Planes read_;
  Planes turned_;
  Planes made_;
  Planes floats_;
};

}  // namespace ferry
