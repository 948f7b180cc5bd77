// Transposed rectangles of items of every size, against the definition.
#include <cstring>
#include <vector>

#include "kernel_level.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::Random;
using Transposes = std::array<Transpose, 5>;

class KernelTranspose : public test::KernelTest {
 protected:
  struct Rectangle {
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t to_stride;
    std::int64_t from_stride;  // either may be negative
  };

  static std::int64_t span(std::int64_t stride, std::int64_t count, std::int64_t row_nbytes) {
    return count > 0 ? (count - 1) * std::abs(stride) + row_nbytes : 0;
  }

  static std::vector<std::byte> noise(Random& random, std::int64_t nbytes) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(nbytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
    return bytes;
  }

  // `offset` of the destination from a cache line.
  static void compare(Random& random, Transpose transpose, std::int64_t size, const Rectangle& r, std::int64_t offset) {
    const auto [rows, columns, to_stride, from_stride] = r;
    constexpr std::int64_t guard = 128;
    std::int64_t from = offset != 0 ? random.between(0, 15) : 0;
    // Nothing behind it may be read.
    const std::vector<std::byte> source = noise(random, from + span(from_stride, columns, rows * size));
    std::vector<std::byte> result = noise(random, span(to_stride, rows, columns * size) + 4 * guard);
    const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(result.data()) % 64);
    std::int64_t to = guard - misaligned + offset;
    if (to_stride < 0) to += (rows - 1) * -to_stride;
    if (from_stride < 0) from += (columns - 1) * -from_stride;
    std::vector<std::byte> expected = result;
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        std::memcpy(expected.data() + to + row * to_stride + column * size,
                    source.data() + from + column * from_stride + row * size, static_cast<std::size_t>(size));
      }
    }
    transpose(result.data() + to, to_stride, source.data() + from, from_stride, rows, columns);
    stream_fence();
    ASSERT_EQ(result, expected) << rows << " x " << columns << " items of " << size << " bytes, strides " << to_stride
                                << " and " << from_stride;
  }

  static void compare_many(const Transposes& transposes, bool aligned) {
    Random random(51);
    for (std::size_t log2 = 0; log2 < transposes.size(); ++log2) {
      const std::int64_t size = std::int64_t{1} << log2;
      for (int round = 0; round < 300; ++round) {
        const std::int64_t most = round % 10 == 0 ? 150 : 40;
        Rectangle r{random.between(0, most), random.between(0, most), 0, 0};
        if (round % 5 == 1) r = {random.between(1, 20), random.between(1, 300), 0, 0};  // as the channels of an image
        if (round % 5 == 2) r = {random.between(1, 300), random.between(1, 20), 0, 0};
        const bool packed = round % 3 == 0;
        r.to_stride = r.columns * size + (packed ? 0 : random.between(0, 70));
        r.from_stride = r.rows * size + (packed ? 0 : random.between(0, 70));
        if (aligned) r.to_stride = (r.to_stride + 63) / 64 * 64;
        if (round % 7 == 3 && r.rows > 0) r.to_stride = -r.to_stride;
        if (round % 7 == 4 && r.columns > 0) r.from_stride = -r.from_stride;
        compare(random, transposes[log2], size, r, aligned ? 0 : random.between(0, 63));
      }
    }
  }
};
FERRY_FOR_EACH_LEVEL(KernelTranspose);

TEST_P(KernelTranspose, TransposesRectanglesOfAnySizeAndStrides) { compare_many(level().transpose, false); }

TEST_P(KernelTranspose, TransposesFarRectanglesToo) { compare_many(level().far_transpose, false); }

TEST_P(KernelTranspose, StreamsRowsThatBeginWithACacheLine) { compare_many(level().streamed_transpose, true); }

}  // namespace
}  // namespace ferry
