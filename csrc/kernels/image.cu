// Bytes of images to planes, four pixels at a time; the results of host/kernels/image.cpp, bit for bit. Compiled
// without fused multiply-add, which rounds once where the host rounds twice.
#include "kernels/hot_cast.cuh"
#include "kernels/image.hpp"
#include "kernels/work.cuh"

namespace ferry::gpu {
namespace {

// Rounds to odd, to the digits of a float: a later rounding to fewer gives what one rounding would have given.
FERRY_DEVICE std::uint32_t odd_float(double value) {
  constexpr std::uint64_t kept_last = std::uint64_t{1} << 29U;
  constexpr std::uint64_t lost = kept_last - 1;
  const auto bits = bits_as<std::uint64_t>(value);
  return narrow_double(bits_as<double>((bits & ~lost) | (((bits & lost) + lost) & kept_last)));
}

struct ToFloat32 {
  using To = std::uint32_t;
  FERRY_DEVICE static To map(std::uint32_t byte, const ChannelMap& map) {
    if (map.in_parts != 0U) {
      const auto value = static_cast<float>(static_cast<std::int32_t>(byte));
      return bits_as<To>((value * map.scale_high + map.shift_high) + (value * map.scale_low + map.shift_low));
    }
    return narrow_double(static_cast<double>(static_cast<std::int32_t>(byte)) * map.scale + map.shift);
  }
};

template <class Narrow>
struct ToHalf {
  using To = std::uint16_t;
  FERRY_DEVICE static To map(std::uint32_t byte, const ChannelMap& map) {
    return Narrow::convert(odd_float(static_cast<double>(static_cast<std::int32_t>(byte)) * map.scale + map.shift));
  }
};

FERRY_DEVICE void store_values(Address to, const std::uint32_t* values) {
  store(to, Bits128{{values[0], values[1], values[2], values[3]}});
}
FERRY_DEVICE void store_values(Address to, const std::uint16_t* values) {
  const std::uint32_t low = values[0] | static_cast<std::uint32_t>(values[1]) << 16U;
  const std::uint32_t high = values[2] | static_cast<std::uint32_t>(values[3]) << 16U;
  store(to, low | static_cast<std::uint64_t>(high) << 32U);
}

// Four pixels of 1, 3 or 4 bytes, by words; each begins at the lowest byte of its own.
FERRY_DEVICE void load_pixels(Address from, std::uint32_t nbytes, std::uint32_t* pixels) {
  const auto first = load<std::uint32_t>(from);
  if (nbytes == 1) {
    FERRY_UNROLL
    for (std::uint32_t p = 0; p < pixels_at_once; ++p) pixels[p] = first >> (8U * p);
    return;
  }
  const auto second = load<std::uint32_t>(from + 4);
  const auto third = load<std::uint32_t>(from + 8);
  pixels[0] = first;
  if (nbytes == 3) {
    pixels[1] = first >> 24U | second << 8U;
    pixels[2] = second >> 16U | third << 16U;
    pixels[3] = third >> 8U;
  } else {
    pixels[1] = second;
    pixels[2] = third;
    pixels[3] = load<std::uint32_t>(from + 12);
  }
}

template <class Map>
FERRY_DEVICE void map_images(const ImageArgs& args) {
  using To = typename Map::To;
  using Index = std::uint64_t;
  const Index items = args.images * args.by_height.divisor * args.by_groups.divisor;
  for (auto item = first_item<Index>(); item < items; item += item_step<Index>()) {
    const Index line = args.by_groups.quotient(item);
    const Index x = (item - line * args.by_groups.divisor) * pixels_at_once;
    const Index image = args.by_height.quotient(line);
    const Index y = line - image * args.by_height.divisor;
    const Address from = args.from + image * static_cast<std::uint64_t>(args.from_image) +
                         y * static_cast<std::uint64_t>(args.from_row) +
                         x * static_cast<std::uint64_t>(args.from_column);
    const Address to = args.to + image * static_cast<std::uint64_t>(args.to_image) +
                       y * static_cast<std::uint64_t>(args.to_row) + x * sizeof(To);
    if (args.aligned != 0U && x + pixels_at_once <= args.width) {
      std::uint32_t pixels[pixels_at_once];
      load_pixels(from, static_cast<std::uint32_t>(args.from_column), pixels);
      FERRY_UNROLL
      for (std::uint32_t c = 0; c < max_channels; ++c) {
        if (c >= args.channels) break;
        const auto shift = static_cast<std::uint32_t>(args.from_channel[c]) * 8U;
        To values[pixels_at_once];
        FERRY_UNROLL
        for (std::uint32_t p = 0; p < pixels_at_once; ++p) {
          values[p] = Map::map(pixels[p] >> shift & 0xFFU, args.maps[c]);
        }
        store_values(to + c * static_cast<std::uint64_t>(args.to_channel), values);
      }
      continue;
    }
    const std::uint64_t left = args.width - x;
    const auto count = static_cast<std::uint32_t>(left < pixels_at_once ? left : pixels_at_once);
    FERRY_NO_UNROLL
    for (std::uint32_t c = 0; c < args.channels; ++c) {
      FERRY_NO_UNROLL
      for (std::uint32_t p = 0; p < count; ++p) {
        const auto byte = load<std::uint8_t>(from + p * static_cast<std::uint64_t>(args.from_column) +
                                             static_cast<std::uint64_t>(args.from_channel[c]));
        store<To>(to + c * static_cast<std::uint64_t>(args.to_channel) + p * sizeof(To), Map::map(byte, args.maps[c]));
      }
    }
  }
}

}  // namespace

FERRY_KERNEL(512) ferry_image_float32(const ImageArgs args) { map_images<ToFloat32>(args); }
FERRY_KERNEL(512) ferry_image_float16(const ImageArgs args) { map_images<ToHalf<Float16FromFloat32>>(args); }
FERRY_KERNEL(512) ferry_image_bfloat16(const ImageArgs args) { map_images<ToHalf<BFloat16FromFloat32>>(args); }

}  // namespace ferry::gpu
