#include "host/image.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "host/carry.hpp"
#include "host/image_row.hpp"
#include "host/kernels/kernels.hpp"
#include "host/parallel.hpp"

namespace ferry {
namespace {

constexpr std::int64_t piece_nbytes = 256 * 1024;  // what a thread takes at a time
constexpr std::int64_t streamed_nbytes = 512;      // shorter runs would be all head and tail

// Rows that follow each other without a gap are one long row.
bool joins_rows(const ImageView& view, const ImageFormat& format) noexcept {
  return format.height == 1 || view.row_step == format.width * view.column_step;
}

// Pixels that lie together in the order of the channels.
bool is_interleaved(const ImageView& view, std::int64_t itemsize, std::size_t channels) noexcept {
  for (std::size_t c = 0; c < channels; ++c) {
    if (view.channels[c] != static_cast<std::int64_t>(c) * itemsize) return false;
  }
  return view.column_step == static_cast<std::int64_t>(channels) * itemsize;
}

bool are_equal(std::span<const PixelMap> maps) noexcept {
  return std::all_of(maps.begin(), maps.end(),
                     [&](const PixelMap& map) { return map.scale == maps[0].scale && map.shift == maps[0].shift; });
}

}  // namespace

PixelMap pixel_map(double scale, double shift) noexcept {
  constexpr int scale_digits = 14;
  constexpr double largest_shift = 0x1p23;  // in units: 255 * 2^14 more is still below 2^24
  PixelMap map{.scale = scale, .shift = shift};
  if (!(std::abs(scale) > 0x1p-60 && std::abs(scale) < 0x1p60)) return map;
  const double unit = std::ldexp(1.0, std::ilogb(scale) + 1 - scale_digits);
  if (!(std::abs(shift) <= largest_shift * unit)) return map;
  const double scale_high = std::nearbyint(scale / unit) * unit;
  const double shift_high = std::nearbyint(shift / unit) * unit;
  map.in_parts = true;
  map.scale_high = static_cast<float>(scale_high);
  map.shift_high = static_cast<float>(shift_high);
  map.scale_low = static_cast<float>(scale - scale_high);
  map.shift_low = static_cast<float>(shift - shift_high);
  return map;
}

bool converts_images(DType to, DType from) noexcept { return map_between(to, from) != nullptr; }

void convert_images(std::span<const ImageCopy> images, const ImageFormat& given) {
  const auto channels = static_cast<std::int64_t>(given.maps.size());
  const std::int64_t values = given.height * given.width * channels;
  if (images.empty() || values == 0) return;
  const std::int64_t to_itemsize = info(given.to).itemsize;
  const std::int64_t from_itemsize = info(given.from).itemsize;

  ImageFormat format = given;
  const auto all = [&](auto&& holds) { return std::all_of(images.begin(), images.end(), holds); };
  if (all([&](const ImageCopy& image) { return joins_rows(image.to, given) && joins_rows(image.from, given); })) {
    format.width *= format.height;
    format.height = 1;
  }
  const bool alike = are_equal(given.maps) && all([&](const ImageCopy& image) {
                       return is_interleaved(image.to, to_itemsize, given.maps.size()) &&
                              is_interleaved(image.from, from_itemsize, given.maps.size());
                     });
  if (alike) {
    format.width *= channels;
    format.maps = format.maps.first(1);
  }

  const auto count = static_cast<std::int64_t>(images.size());
  // Values are made in the cache anyway; sending them past it costs hardly more, and soon less.
  const bool stream = count * values * to_itemsize >= stream_threshold_nbytes() / 4;
  const std::int64_t tile = std::min(ImageRow::longest(format), format.width);
  const std::int64_t tiles_in_row = (format.width + tile - 1) / tile;
  const std::int64_t tiles = count * format.height * tiles_in_row;
  const std::int64_t tile_nbytes =
      tile * static_cast<std::int64_t>(format.maps.size()) * std::max(to_itemsize, from_itemsize);
  const int threads = useful_threads(tiles * tile_nbytes);
  const std::int64_t per_piece = std::max<std::int64_t>(piece_nbytes / tile_nbytes, 1);

  parallel_for(threads, (tiles + per_piece - 1) / per_piece, [&](std::int64_t piece) noexcept {
    ImageRow row(format, alike, stream && tile * to_itemsize >= streamed_nbytes);
    const std::int64_t end = std::min((piece + 1) * per_piece, tiles);
    std::int64_t line = piece * per_piece / tiles_in_row;
    std::int64_t first = piece * per_piece % tiles_in_row * tile;
    std::int64_t y = line % format.height;
    row.begin(images[static_cast<std::size_t>(line / format.height)]);
    for (std::int64_t at = piece * per_piece; at < end; ++at) {
      row.convert(y, first, std::min(tile, format.width - first));
      first += tile;
      if (first < format.width || at + 1 == end) continue;
      first = 0;
      ++line;
      if (++y < format.height) continue;
      y = 0;
      row.begin(images[static_cast<std::size_t>(line / format.height)]);
    }
    if (stream) stream_fence();
  });
}

}  // namespace ferry
