// Rows of one channel at every processor level, and whole images of any layout, against the formula itself.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "host/image.hpp"
#include "host/kernels/kernels.hpp"
#include "host/parallel.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::Random;

template <class To, class From>
std::vector<To> mapped(const Kernels& level, DType to, DType from, const std::vector<From>& values,
                       const PixelMap& map) {
  std::vector<To> result(values.size() + 1, To{7});
  level.map_pixels(to, from)(reinterpret_cast<std::byte*>(result.data()),
                             reinterpret_cast<const std::byte*>(values.data()),
                             static_cast<std::int64_t>(values.size()), map);
  EXPECT_EQ(result.back(), To{7});
  result.pop_back();
  return result;
}

// Calls visit for each level of this processor.
template <class Visit>
void for_each_level(Visit&& visit) {
  const KernelLevels found = kernel_levels();
  for (int i = 0; i < found.count; ++i) {
    const Kernels& level = *found.levels[static_cast<std::size_t>(i)];
    SCOPED_TRACE(level.level);
    visit(level);
  }
}

std::vector<std::uint8_t> all_bytes() {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  return bytes;
}

TEST(PixelMap, HasPartsThatAddUpToTheNumbers) {
  Random random(11);
  for (int i = 0; i < 2000; ++i) {
    const double scale = std::ldexp(static_cast<double>(random.between(-1'000'000, 1'000'000)), -28);
    const double shift = scale * static_cast<double>(random.between(-511'000, 511'000)) / 1000.0;
    const PixelMap map = pixel_map(scale, shift);
    if (scale == 0.0) continue;
    ASSERT_TRUE(map.in_parts);
    const double unit = std::abs(scale);
    EXPECT_NEAR(static_cast<double>(map.scale_high) + static_cast<double>(map.scale_low), scale, unit * 0x1p-37);
    EXPECT_NEAR(static_cast<double>(map.shift_high) + static_cast<double>(map.shift_low), shift, unit * 0x1p-37);
    for (const int value : {0, 1, 127, 255}) {
      const float high = static_cast<float>(value) * map.scale_high + map.shift_high;
      EXPECT_EQ(high,
                static_cast<double>(value) * static_cast<double>(map.scale_high) + static_cast<double>(map.shift_high));
    }
  }
}

TEST(PixelMap, HasNoPartsWhereTheyWouldNotBeExact) {
  EXPECT_FALSE(pixel_map(0.0, 1.0).in_parts);
  EXPECT_FALSE(pixel_map(1.0, 1e6).in_parts);
  EXPECT_FALSE(pixel_map(1e-30, 0.0).in_parts);
  EXPECT_FALSE(pixel_map(1e30, 0.0).in_parts);
  EXPECT_FALSE(pixel_map(1.0, std::numeric_limits<double>::quiet_NaN()).in_parts);
}

TEST(MapPixels, RoundsBytesOverTheLargestCorrectlyAtEveryLevel) {
  for_each_level([](const Kernels& level) {
    for (const PixelMap& map : {pixel_map(1.0 / 255.0, 0.0), PixelMap{.scale = 1.0 / 255.0}}) {
      const auto floats = mapped<float>(level, DType::float32, DType::uint8, all_bytes(), map);
      for (std::size_t i = 0; i < floats.size(); ++i) EXPECT_EQ(floats[i], static_cast<float>(i) / 255.0F);
    }
  });
}

TEST(MapPixels, IsTheFormulaInDoubleRoundedOnceAtEveryLevel) {
  Random random(12);
  std::vector<float> singles;
  std::vector<double> doubles;
  for (int i = 0; i < 1000; ++i) {
    doubles.push_back(std::ldexp(static_cast<double>(random.between(-1'000'000'000, 1'000'000'000)), -30));
    singles.push_back(static_cast<float>(doubles.back()));
  }
  const PixelMap map{.scale = 1.0 / 0.229, .shift = -0.485 / 0.229};
  const auto exact = [&](double value) {
    const double product = value * map.scale;  // by itself, so that no fused operation takes its place
    return product + map.shift;
  };
  for_each_level([&](const Kernels& level) {
    const auto from_doubles = mapped<float>(level, DType::float32, DType::float64, doubles, map);
    const auto from_singles = mapped<double>(level, DType::float64, DType::float32, singles, map);
    for (std::size_t i = 0; i < doubles.size(); ++i) {
      ASSERT_EQ(from_doubles[i], static_cast<float>(exact(doubles[i])));
      ASSERT_EQ(from_singles[i], exact(static_cast<double>(singles[i])));
    }
  });
}

TEST(MapPixels, MakesOddFloatsForTypesOf16Bits) {
  const std::vector<double> values{1.0, 1.0 + 0x1p-40, 1.0 + 0x1p-23 - 0x1p-40, -1.0 - 0x1p-50,
                                   0.0, -0.0,          65520.0 - 0x1p-30};
  const std::vector<float> expected{1.0F, 1.0F + 0x1p-23F, 1.0F + 0x1p-23F, -1.0F - 0x1p-23F,
                                    0.0F, -0.0F,           0x1.ffdffep15F};
  for_each_level([&](const Kernels& level) {
    for (const DType to : {DType::float16, DType::bfloat16}) {
      const auto odd = mapped<float>(level, to, DType::float64, values, PixelMap{.shift = -0.0});
      for (std::size_t i = 0; i < odd.size(); ++i) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(odd[i]), std::bit_cast<std::uint32_t>(expected[i])) << values[i];
      }
    }
  });
}

TEST(MapPixels, RoundsToEvenClampsAndMakesNanZeroAtEveryLevel) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values{0.5,
                                   1.5,
                                   2.5,
                                   253.5,
                                   254.5,
                                   254.50001,
                                   -0.5,
                                   -3.0,
                                   1e300,
                                   infinity,
                                   -infinity,
                                   std::numeric_limits<double>::quiet_NaN(),
                                   0.49999999999999994,
                                   65534.5};
  const std::vector<std::uint8_t> bytes{0, 2, 2, 254, 254, 255, 0, 0, 255, 255, 0, 0, 0, 255};
  const std::vector<std::uint16_t> words{0, 2, 2, 254, 254, 255, 0, 0, 65535, 65535, 0, 0, 0, 65534};
  for_each_level([&](const Kernels& level) {
    EXPECT_EQ(mapped<std::uint8_t>(level, DType::uint8, DType::float64, values, PixelMap{}), bytes);
    EXPECT_EQ(mapped<std::uint16_t>(level, DType::uint16, DType::float64, values, PixelMap{}), words);
  });
}

TEST(MapPixels, HasNoLoopsForOtherPairs) {
  for_each_level([](const Kernels& level) {
    EXPECT_EQ(level.map_pixels(DType::uint8, DType::uint8), nullptr);
    EXPECT_EQ(level.map_pixels(DType::int32, DType::float32), nullptr);
    EXPECT_EQ(level.map_pixels(DType::float32, DType::int64), nullptr);
  });
  EXPECT_TRUE(converts_images(DType::bfloat16, DType::float16));
  EXPECT_FALSE(converts_images(DType::float32, DType::complex64));
}

// The tensor as an image with axes (channel, row, column).
ImageView view_of(const TensorRef& ref, std::int64_t channels) {
  ImageView view;
  view.data = ref.data;
  for (std::int64_t c = 0; c < channels; ++c) view.channels[static_cast<std::size_t>(c)] = c * ref.layout.strides[0];
  view.row_step = ref.layout.strides[1];
  view.column_step = ref.layout.strides[2];
  return view;
}

TEST(ConvertImages, TakesAnyLayoutOnBothSidesAndLeavesGapsAlone) {
  Random random(13);
  for (int round = 0; round < 400; ++round) {
    const std::int64_t channels = random.between(1, 4);
    const Extents shape{channels, random.between(1, 6), random.between(1, 600)};
    const auto count = static_cast<std::size_t>(random.between(1, 3));
    std::vector<test::Strided> to;
    std::vector<test::Strided> from;
    std::vector<ImageCopy> images;
    for (std::size_t i = 0; i < count; ++i) {
      to.push_back(test::random_strided(random, DType::float32, shape, false));
      from.push_back(test::random_strided(random, DType::uint8, shape));
      images.push_back({view_of(to[i].ref, channels), view_of(from[i].ref, channels)});
    }
    std::vector<PixelMap> maps;
    for (std::int64_t c = 0; c < channels; ++c) {
      maps.push_back(pixel_map(static_cast<double>(random.between(1, 9)), static_cast<double>(random.between(-9, 9))));
    }
    std::vector<std::vector<std::byte>> expected;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::byte> kept = to[i].memory;
      for (std::int64_t flat = 0; flat < shape[0] * shape[1] * shape[2]; ++flat) {
        const PixelMap& map = maps[static_cast<std::size_t>(flat / (shape[1] * shape[2]))];
        const double value = test::element<std::uint8_t>(from[i].ref, flat) * map.scale + map.shift;
        test::set_element(to[i].ref, flat, static_cast<float>(value));
      }
      expected.push_back(to[i].memory);
      std::memcpy(to[i].memory.data(), kept.data(), kept.size());
    }
    const ThreadLimit threads(static_cast<int>(random.between(1, 3)));
    convert_images(images, {DType::float32, DType::uint8, shape[1], shape[2], maps});
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(to[i].memory, expected[i]) << "round " << round;
  }
}

}  // namespace
}  // namespace ferry
