#include <cmath>

#include "core/error.hpp"
#include "host/copy.hpp"
#include "host/parallel.hpp"
#include "host/stack.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::element;
using test::over;
using test::Random;
using test::random_shape;
using test::random_strided;
using test::set_element;
using test::Strided;
using test::tensor;

TensorRef stacked_over(std::vector<float>& memory, std::int64_t count, const Extents& shape) {
  Extents whole{count};
  for (const std::int64_t extent : shape) whole.push_back(extent);
  return tensor(memory.data(), DType::float32, whole, contiguous_strides(whole, 4));
}

void set_number(const TensorRef& ref, std::int64_t flat, std::int64_t number) {
  if (ref.dtype == DType::float32) set_element(ref, flat, static_cast<float>(number));
  if (ref.dtype == DType::float64) set_element(ref, flat, static_cast<double>(number));
  if (ref.dtype == DType::uint8) set_element(ref, flat, static_cast<std::uint8_t>(number));
  if (ref.dtype == DType::int16) {
    const auto value = static_cast<std::uint16_t>(number);
    set_element(ref, flat, ref.byte_swapped ? __builtin_bswap16(value) : value);
  }
}

TEST(CopyEach, PutsSourcesOfAnyDtypeAndLayoutInTheirPlaces) {
  Random random(77);
  for (int round = 0; round < 200; ++round) {
    const ThreadLimit threads(static_cast<int>(random.between(1, 4)));
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 4)));
    const std::int64_t count = random.between(1, 9), size = element_count(shape).value();
    std::vector<Strided> sources;
    std::vector<TensorRef> refs;
    for (std::int64_t i = 0; i < count; ++i) {
      constexpr DType dtypes[]{DType::float32, DType::float64, DType::uint8, DType::int16};
      sources.push_back(random_strided(random, dtypes[random.between(0, 3)], shape, false));
      refs.push_back(sources.back().ref);
      refs.back().byte_swapped = refs.back().dtype == DType::int16 && random.between(0, 1) == 0;
      for (std::int64_t flat = 0; flat < size; ++flat) set_number(refs.back(), flat, (i * size + flat) % 251);
    }
    std::vector<float> memory(static_cast<std::size_t>(count * size), -1.0F);
    copy_each(stacked_over(memory, count, shape), refs);
    for (std::int64_t flat = 0; flat < count * size; ++flat) {
      ASSERT_EQ(memory[static_cast<std::size_t>(flat)], static_cast<float>(flat % 251));
    }
  }
}

TEST(CopyEach, SharesManyLargeItemsAndFewHugeOnesBetweenThreads) {
  for (const std::int64_t count : {2, 40}) {
    const ThreadLimit threads(3);
    const std::int64_t size = 6'000'000 / count;
    std::vector<std::uint8_t> bytes(6'000'000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i % 253);
    std::vector<TensorRef> refs;
    for (std::int64_t i = 0; i < count; ++i) refs.push_back(tensor(bytes.data() + i * size, DType::uint8, {size}, {1}));
    std::vector<float> memory(bytes.size(), -1.0F);
    copy_each(stacked_over(memory, count, {size}), refs);
    for (std::size_t i = 0; i < bytes.size(); ++i) ASSERT_EQ(memory[i], static_cast<float>(bytes[i]));
  }
}

TEST(CopyEach, WritesPastTheCachesToNeighboursUnharmed) {
  const std::int64_t count = 50, size = 1'000'003;  // rows begin at any place in a cache line
  std::vector<float> row(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<float>(i % 1021);
  const std::vector<TensorRef> refs(static_cast<std::size_t>(count), over(row, DType::float32));
  std::vector<float> memory(static_cast<std::size_t>(count * size) + 1, -1.0F);
  const ThreadLimit threads(2);
  copy_each(stacked_over(memory, count, {size}), refs);
  for (std::size_t i = 0; i + 1 < memory.size(); ++i) ASSERT_EQ(memory[i], row[i % row.size()]);
  EXPECT_EQ(memory.back(), -1.0F);
}

TEST(CopyEach, FillsAStridedDestination) {
  std::vector<float> memory(12, -1.0F);
  std::vector<float> first{1, 2}, second{3, 4};
  const TensorRef transposed = tensor(memory.data(), DType::float32, {2, 2}, {8, 24});
  const std::vector<TensorRef> refs{over(first, DType::float32), over(second, DType::float32)};
  copy_each(transposed, refs);
  EXPECT_EQ(memory, (std::vector<float>{1, -1, 3, -1, -1, -1, 2, -1, 4, -1, -1, -1}));
}

TEST(CopyEach, UnpacksPairs) {
  std::vector<std::uint8_t> pairs{0x21, 0x43};  // 0.5, 1, 1.5, 2
  std::vector<float> memory(8);
  const std::vector<TensorRef> refs(2, over(pairs, DType::float4_e2m1fn_x2));
  copy_each(stacked_over(memory, 2, {4}), refs);
  EXPECT_EQ(memory, (std::vector<float>{0.5F, 1, 1.5F, 2, 0.5F, 1, 1.5F, 2}));
}

TEST(CopyEach, RefusesOtherShapesBeforeAnythingIsWritten) {
  std::vector<float> memory(4, -1.0F), two(2), three(3);
  const std::vector<TensorRef> refs{over(two, DType::float32), over(three, DType::float32)};
  EXPECT_THROW(copy_each(stacked_over(memory, 2, {2}), refs), Error);
  EXPECT_EQ(memory, std::vector<float>(4, -1.0F));
}

}  // namespace
}  // namespace ferry
