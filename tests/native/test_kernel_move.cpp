// Rows of items of every size, at any steps, against a loop over single bytes.
#include <algorithm>
#include <cstring>
#include <functional>

#include "guarded.hpp"
#include "kernel_level.hpp"

namespace ferry {
namespace {

using test::Random;
using test::RowMemory;

class KernelMove : public test::KernelTest {
 protected:
  using ChangeItem = std::function<void(std::byte* item)>;

  // Counts around every vector length, steps that have loops of their own and others.
  static void compare(Random& random, MoveRow row, std::int64_t size, const ChangeItem& change) {
    for (const std::int64_t count : {0, 1, 2, 3, 15, 17, 33, 64, 65, 257}) {
      for (const std::int64_t to_step : {size, 2 * size, -size, -3 * size, size + 1}) {
        for (const std::int64_t from_step : {size, 2 * size, 3 * size, 4 * size, 5 * size, -size, -2 * size,
                                             std::int64_t{0}, size + 1, std::int64_t{1}}) {
          RowMemory from(random, size, from_step, count);
          RowMemory to(random, size, to_step, count);
          RowMemory expected = to;
          for (std::int64_t i = 0; i < count; ++i) {
            std::memcpy(expected.item(i), from.item(i), static_cast<std::size_t>(size));
            change(expected.item(i));
          }
          row(to.row(), to_step, from.row(), from_step, count);
          ASSERT_EQ(to.bytes(), expected.bytes())
              << count << " items of " << size << " bytes, steps " << to_step << " and " << from_step;
        }
      }
    }
  }
};
FERRY_FOR_EACH_LEVEL(KernelMove);

TEST_P(KernelMove, MovesItemsOfEverySizeAndNothingElse) {
  Random random(31);
  for (std::size_t size = 1; size <= longest_item_nbytes; ++size) {
    compare(random, level().move[size - 1], static_cast<std::int64_t>(size), [](std::byte*) {});
  }
}

TEST_P(KernelMove, MovesRowsOfFewItemsAndNothingElse) {
  Random random(37);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t log2 = static_cast<std::size_t>(random.between(0, 4));
    const std::int64_t size = std::int64_t{1} << log2;
    const std::int64_t rows = random.between(0, 6);
    const std::int64_t count = random.between(1, 20);
    const std::int64_t to_step = size * random.between(1, 2);
    const std::int64_t from_step = size * random.between(-2, 3);
    const std::int64_t to_stride = count * to_step + random.between(0, 9);
    const std::int64_t from_stride = random.between(-1, 1) * (count * std::abs(from_step) + random.between(0, 9));
    // Rows lie within what RowMemory takes for items: from the lowest of their bytes to the highest.
    const std::int64_t from_low = std::min<std::int64_t>((count - 1) * from_step, 0);
    RowMemory from(random, (count - 1) * std::abs(from_step) + size, from_stride, rows);
    RowMemory to(random, (count - 1) * to_step + size, to_stride, rows);
    RowMemory expected = to;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(expected.item(r) + i * to_step, from.item(r) - from_low + i * from_step,
                    static_cast<std::size_t>(size));
      }
    }
    level().move_rows[log2](to.row(), to_stride, to_step, from.row() - from_low, from_stride, from_step, rows, count);
    ASSERT_EQ(to.bytes(), expected.bytes())
        << rows << " rows of " << count << " items of " << size << " bytes, steps " << to_step << " and " << from_step;
  }
}

TEST_P(KernelMove, CopiesRowsOfEveryLengthAndNothingElse) {
  Random random(36);
  for (std::int64_t nbytes = 0; nbytes <= longest_short_row_nbytes + 1; ++nbytes) {
    for (const std::int64_t apart : {std::int64_t{0}, std::int64_t{1}, std::int64_t{64}}) {
      const std::int64_t count = random.between(0, 5);
      const std::int64_t to_step = (nbytes + apart) * (random.between(0, 1) != 0 ? 1 : -1);
      const std::int64_t from_step = random.between(-1, 1) * (nbytes + random.between(0, 9));
      RowMemory from(random, nbytes, from_step, count);
      RowMemory to(random, nbytes, to_step, count);
      RowMemory expected = to;
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(expected.item(i), from.item(i), static_cast<std::size_t>(nbytes));
      }
      level().copy_rows(to.row(), to_step, from.row(), from_step, count, nbytes);
      ASSERT_EQ(to.bytes(), expected.bytes())
          << count << " rows of " << nbytes << " bytes, steps " << to_step << " and " << from_step;
    }
  }
}

TEST_P(KernelMove, SwapsTheBytesOfAnItem) {
  Random random(32);
  EXPECT_EQ(level().swap.front(), nullptr);
  EXPECT_EQ(level().swap.back(), nullptr);
  for (const std::size_t log2 : {1U, 2U, 3U}) {
    const std::int64_t size = std::int64_t{1} << log2;
    compare(random, level().swap[log2], size, [size](std::byte* item) { std::reverse(item, item + size); });
  }
}

TEST_P(KernelMove, SwapsTheBytesOfEachHalfOfAComplexItem) {
  Random random(33);
  for (const std::size_t log2 : {2U, 3U, 4U}) {
    const std::int64_t half = std::int64_t{1} << (log2 - 1);
    compare(random, level().complex_swap[log2], 2 * half, [half](std::byte* item) {
      std::reverse(item, item + half);
      std::reverse(item + half, item + 2 * half);
    });
  }
}

TEST_P(KernelMove, MakesBooleansOfAnyBytes) {
  Random random(34);
  compare(random, level().move_booleans, 1,
          [](std::byte* item) { *item = *item == std::byte{0} ? std::byte{0} : std::byte{1}; });
}

struct Flip {
  DType dtype;
  bool conjugated;
  bool negated;
  std::vector<std::int64_t> signs;  // bytes of an item whose top bit changes
};

TEST_P(KernelMove, ChangesTheSignsThatConjugationAndNegationChange) {
  Random random(35);
  for (const Flip& flip : {Flip{DType::float8_e4m3fn, false, true, {0}}, Flip{DType::float16, false, true, {1}},
                           Flip{DType::bfloat16, false, true, {1}}, Flip{DType::float32, false, true, {3}},
                           Flip{DType::float64, false, true, {7}}, Flip{DType::complex32, true, false, {3}},
                           Flip{DType::complex32, true, true, {1}}, Flip{DType::complex64, true, false, {7}},
                           Flip{DType::complex64, false, true, {3, 7}}, Flip{DType::complex64, true, true, {3}},
                           Flip{DType::complex128, true, false, {15}}, Flip{DType::complex128, false, true, {7, 15}}}) {
    SCOPED_TRACE(info(flip.dtype).name);
    const MoveRow row = level().flip(flip.dtype, flip.conjugated, flip.negated);
    ASSERT_NE(row, nullptr);
    compare(random, row, info(flip.dtype).itemsize, [&flip](std::byte* item) {
      for (const std::int64_t at : flip.signs) item[at] ^= std::byte{0x80};
    });
  }
  for (const DType other : {DType::int32, DType::float8_e5m2fnuz, DType::float8_e8m0fnu, DType::bool_}) {
    EXPECT_EQ(level().flip(other, false, true), nullptr) << info(other).name;
  }
}

}  // namespace
}  // namespace ferry
