#include "host/image_row.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace ferry {
namespace {

std::size_t by_size(std::int64_t itemsize) noexcept {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(itemsize)));
}

MoveRow move_of(std::int64_t itemsize) noexcept { return kernels().move[static_cast<std::size_t>(itemsize - 1)]; }

constexpr std::int64_t float_nbytes = 4;
constexpr std::int64_t line_nbytes = 64;

bool is_small_float(DType dtype) noexcept { return dtype == DType::float16 || dtype == DType::bfloat16; }

}  // namespace

MapRow map_between(DType to, DType from) noexcept {
  return kernels().map_pixels(to, is_small_float(from) ? DType::float32 : from);
}

ImageRow::ImageRow(const ImageFormat& format, bool flat, bool stream) noexcept
    : format_(format),
      to_itemsize_(info(format.to).itemsize),
      from_itemsize_(info(format.from).itemsize),
      channels_(format.maps.size()),
      flat_(flat),
      stream_(stream),
      map_(map_between(format.to, format.from)) {
  if (is_small_float(format.from)) widen_ = kernels().cast(DType::float32, format.from);
  if (is_small_float(format.to)) narrow_ = kernels().cast(format.to, DType::float32);
}

std::int64_t ImageRow::longest(const ImageFormat& format) noexcept {
  return plane_nbytes / std::max<std::int64_t>({info(format.to).itemsize, info(format.from).itemsize, float_nbytes});
}

// None unless pixels follow each other closely, forwards or backwards.
std::optional<ImageRow::Pixel> ImageRow::pixel_of(const ImageView& view, std::int64_t itemsize) const noexcept {
  const auto pixel_nbytes = static_cast<std::int64_t>(channels_) * itemsize;
  if (channels_ == 1 || (view.column_step != pixel_nbytes && view.column_step != -pixel_nbytes)) return std::nullopt;
  const auto end = view.channels.begin() + static_cast<std::ptrdiff_t>(channels_);
  Pixel pixel{*std::min_element(view.channels.begin(), end), {}};
  unsigned taken = 0;
  for (std::size_t c = 0; c < channels_; ++c) {
    const std::int64_t offset = view.channels[c] - pixel.offset;
    if (offset % itemsize != 0 || offset >= pixel_nbytes) return std::nullopt;
    pixel.positions[c] = static_cast<std::size_t>(offset / itemsize);
    taken |= 1U << pixel.positions[c];
  }
  if (taken != (1U << channels_) - 1U) return std::nullopt;
  return pixel;
}

void ImageRow::begin(const ImageCopy& image) noexcept {
  to_ = image.to;
  from_ = image.from;
  if (flat_) {
    to_.column_step = to_itemsize_;
    from_.column_step = from_itemsize_;
  }
  to_pixel_ = pixel_of(to_, to_itemsize_);
  from_pixel_ = pixel_of(from_, from_itemsize_);
}

// Where the values of each channel lie one after the other: in the image itself, or gathered.
ImageRow::Pointers ImageRow::planes_of(const std::byte* first, std::int64_t count) noexcept {
  Pointers planes{};
  const std::int64_t step = from_.column_step;
  const auto size = by_size(from_itemsize_);
  const MoveRow move = from_.byte_swapped && from_itemsize_ > 1 ? kernels().swap[size] : move_of(from_itemsize_);
  if (!from_pixel_) {
    for (std::size_t c = 0; c < channels_; ++c) {
      planes[c] = first + from_.channels[c];
      if (step == from_itemsize_ && !from_.byte_swapped) continue;
      move(read_[c], from_itemsize_, planes[c], step, count);
      planes[c] = read_[c];
    }
    return planes;
  }
  const bool backwards = step < 0;
  const std::int64_t pixel_nbytes = std::abs(step);
  // What follows may lie in another page, which the processor would not fetch ahead from.
  const std::byte* next = first + count * step;
  for (std::int64_t at = 0; at < count * pixel_nbytes; at += line_nbytes) {
    __builtin_prefetch(next + (backwards ? -at : at));
  }
  const std::byte* lowest = first + from_pixel_->offset + (backwards ? (count - 1) * step : 0);
  kernels().transpose[size](read_[0], plane_stride, lowest, pixel_nbytes, static_cast<std::int64_t>(channels_), count);
  for (std::size_t c = 0; c < channels_; ++c) {
    planes[c] = read_[from_pixel_->positions[c]];
    if (!backwards && !from_.byte_swapped) continue;
    const std::byte* begin = backwards ? planes[c] + (count - 1) * from_itemsize_ : planes[c];
    move(turned_[c], from_itemsize_, begin, backwards ? -from_itemsize_ : from_itemsize_, count);
    planes[c] = turned_[c];
  }
  return planes;
}

void ImageRow::map_plane(std::byte* to, const std::byte* from, std::int64_t count, const PixelMap& map) noexcept {
  if (widen_ != nullptr) {
    widen_(floats_[0], float_nbytes, from, from_itemsize_, count);
    from = floats_[0];
  }
  map_(narrow_ != nullptr ? floats_[1] : to, from, count, map);
  if (narrow_ != nullptr) narrow_(to, to_itemsize_, floats_[1], float_nbytes, count);
}

void ImageRow::write_plane(std::byte* to, const std::byte* from, std::int64_t count, const PixelMap& map) noexcept {
  if (stream_) {
    map_plane(made_[0], from, count, map);
    kernels().stream_copy(to, made_[0], count * to_itemsize_);
  } else {
    map_plane(to, from, count, map);
  }
}

void ImageRow::convert(std::int64_t y, std::int64_t first, std::int64_t count) noexcept {
  const Pointers planes = planes_of(from_.data + y * from_.row_step + first * from_.column_step, count);
  std::byte* at = to_.data + y * to_.row_step + first * to_.column_step;
  if (to_.column_step == to_itemsize_) {
    for (std::size_t c = 0; c < channels_; ++c) write_plane(at + to_.channels[c], planes[c], count, format_.maps[c]);
    return;
  }
  const bool join = to_pixel_ && to_.column_step > 0;
  for (std::size_t c = 0; c < channels_; ++c) {
    std::byte* plane = made_[join ? to_pixel_->positions[c] : c];
    map_plane(plane, planes[c], count, format_.maps[c]);
    if (!join) move_of(to_itemsize_)(at + to_.channels[c], to_.column_step, plane, to_itemsize_, count);
  }
  if (!join) return;
  std::byte* joined = stream_ ? turned_[0] : at + to_pixel_->offset;  // what was turned has been used by now
  kernels().transpose[by_size(to_itemsize_)](joined, to_.column_step, made_[0], plane_stride, count,
                                             static_cast<std::int64_t>(channels_));
  if (stream_) kernels().stream_copy(at + to_pixel_->offset, joined, count * to_.column_step);
}

}  // namespace ferry
