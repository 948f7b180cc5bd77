// The cast kernels of every processor level against the block path, bit for bit, and against C++ arithmetic where C++
// defines the result.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cast_values.hpp"
#include "host/block_cast.hpp"
#include "kernel_level.hpp"

namespace ferry {
namespace {

using test::Bytes;
using test::Random;

class KernelCast : public test::KernelTest {};
FERRY_FOR_EACH_LEVEL(KernelCast);

// Calls visit(to, from, row) for every pair that has a loop at this level.
template <class Visit>
void for_each_pair(const Kernels& level, Visit&& visit) {
  for (const DType to : test::cast_dtypes) {
    for (const DType from : test::cast_dtypes) {
      const MoveRow row = level.cast(to, from);
      if (row == nullptr) continue;
      SCOPED_TRACE(std::string(info(from).name) + " to " + std::string(info(to).name));
      visit(to, from, row);
    }
  }
}

void through_blocks(DType to_dtype, std::byte* to, std::int64_t to_step, DType from_dtype, const std::byte* from,
                    std::int64_t from_step, std::int64_t extent) {
  const BlockCast cast(to_dtype, from_dtype);
  Block from_block;
  Block to_block;
  for_each_block(extent, [&](std::int64_t first, std::int64_t count) {
    element_io(from_dtype, false).load(from + first * from_step, from_step, count, from_block);
    cast(from_block, to_block, count);
    element_io(to_dtype, false).store(to + first * to_step, to_step, count, to_block);
  });
}

// Position of the first element that differs, or -1.
std::int64_t first_difference(const Bytes& a, const Bytes& b, std::int64_t itemsize) {
  const auto difference = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return difference == a.end() ? -1 : (difference - a.begin()) / itemsize;
}

TEST_P(KernelCast, GivesTheBitsOfTheBlockPath) {
  Random random(20240917);
  std::vector<Bytes> sources;
  for (const DType from : test::cast_dtypes) sources.push_back(test::values(from, random));
  for_each_pair(level(), [&](DType to, DType from, MoveRow row) {
    const auto at =
        std::find(std::begin(test::cast_dtypes), std::end(test::cast_dtypes), from) - std::begin(test::cast_dtypes);
    const Bytes& source = sources[static_cast<std::size_t>(at)];
    const std::int64_t to_size = info(to).itemsize;
    const std::int64_t from_size = info(from).itemsize;
    const auto count = static_cast<std::int64_t>(source.size()) / from_size;
    Bytes expected(static_cast<std::size_t>(count * to_size));
    Bytes contiguous = expected;
    Bytes backwards = expected;
    through_blocks(to, expected.data(), to_size, from, source.data(), from_size, count);
    row(contiguous.data(), to_size, source.data(), from_size, count);
    ASSERT_EQ(first_difference(contiguous, expected, to_size), -1);
    const std::int64_t last = count - 1;
    row(backwards.data() + last * to_size, -to_size, source.data() + last * from_size, -from_size, count);
    ASSERT_EQ(first_difference(backwards, expected, to_size), -1);
  });
}

TEST_P(KernelCast, TakesAnyCountStepAndAlignmentAndLeavesGapsAlone) {
  Random random(7);
  for_each_pair(level(), [&](DType to, DType from, MoveRow row) {
    for (std::int64_t count = 0; count <= 70; ++count) {
      const std::int64_t to_size = info(to).itemsize;
      const std::int64_t from_size = info(from).itemsize;
      const bool packed = random.between(0, 1) == 0;
      std::int64_t to_step = packed ? to_size : random.between(to_size, to_size + 9);
      std::int64_t from_step = packed ? from_size : random.between(0, from_size + 9);
      Bytes source(static_cast<std::size_t>(70 * (from_size + 9) + 64));
      Bytes expected(static_cast<std::size_t>(70 * (to_size + 9) + 64));
      for (std::byte& byte : source) byte = static_cast<std::byte>(random.bits());
      for (std::byte& byte : expected) byte = static_cast<std::byte>(random.bits());
      Bytes result = expected;
      std::int64_t to_first = random.between(0, 15);
      std::int64_t from_first = random.between(0, 15);
      if (!packed && count > 0 && random.between(0, 1) == 0) {
        to_first += (count - 1) * to_step;
        to_step = -to_step;
      }
      if (!packed && count > 0 && random.between(0, 1) == 0) {
        from_first += (count - 1) * from_step;
        from_step = -from_step;
      }
      through_blocks(to, expected.data() + to_first, to_step, from, source.data() + from_first, from_step, count);
      row(result.data() + to_first, to_step, source.data() + from_first, from_step, count);
      ASSERT_EQ(result, expected) << "count " << count << ", steps " << to_step << " and " << from_step;
    }
  });
}

template <class To, class From>
std::vector<To> convert(const Kernels& level, std::vector<From> source, DType from, DType to) {
  std::vector<To> result(source.size());
  level.cast(to, from)(reinterpret_cast<std::byte*>(result.data()), sizeof(To),
                       reinterpret_cast<const std::byte*>(source.data()), sizeof(From),
                       static_cast<std::int64_t>(source.size()));
  return result;
}

TEST_P(KernelCast, ClampsEveryFloatAsLongDoubleArithmeticDoes) {
  Random random(11);
  const Bytes bytes = test::floats<float, std::uint32_t>(random);
  std::vector<float> source(bytes.size() / sizeof(float));
  std::memcpy(source.data(), bytes.data(), bytes.size());
  const auto check = [&]<class Int>(DType to, Int) {
    const auto result = convert<Int>(level(), source, DType::float32, to);
    for (std::size_t i = 0; i < source.size(); ++i) {
      const auto low = static_cast<long double>(std::numeric_limits<Int>::min());
      const auto high = static_cast<long double>(std::numeric_limits<Int>::max());
      const long double value = std::isnan(source[i]) ? 0.0L : std::trunc(static_cast<long double>(source[i]));
      ASSERT_EQ(result[i], static_cast<Int>(std::clamp(value, low, high))) << source[i];
    }
  };
  check(DType::int8, std::int8_t{});
  check(DType::uint8, std::uint8_t{});
  check(DType::int16, std::int16_t{});
  check(DType::uint16, std::uint16_t{});
  check(DType::int32, std::int32_t{});
  check(DType::uint32, std::uint32_t{});
  if constexpr (std::numeric_limits<long double>::digits >= 64) {
    check(DType::int64, std::int64_t{});
    check(DType::uint64, std::uint64_t{});
  }
}

TEST_P(KernelCast, RoundsFloatToFloat16OnceTiesToEven) {
  const std::vector<float> source{0x1p-25F, 0x1.000002p-25F, 0x1.8p-24F, 65519.996F, 65520.0F, 2049.0F, 2051.0F, -0.0F};
  EXPECT_EQ(convert<std::uint16_t>(level(), source, DType::float32, DType::float16),
            (std::vector<std::uint16_t>{0x0000, 0x0001, 0x0002, 0x7BFF, 0x7C00, 0x6800, 0x6802, 0x8000}));
}

TEST_P(KernelCast, KeepsTheSignOfANaNAndDropsItsPayloadInSmallFormats) {
  EXPECT_EQ((convert<std::uint32_t, std::uint16_t>(level(), {0x7F81, 0xFFFF, 0xFF80}, DType::bfloat16, DType::float32)),
            (std::vector<std::uint32_t>{0x7FC00000, 0xFFC00000, 0xFF800000}));
  EXPECT_EQ((convert<std::uint16_t, std::uint32_t>(level(), {0x7F800001, 0xFFFFFFFF}, DType::float32, DType::float16)),
            (std::vector<std::uint16_t>{0x7E00, 0xFE00}));
}

}  // namespace
}  // namespace ferry
