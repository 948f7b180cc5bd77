// Copies large enough for panels, threads and, with the threshold lowered, for stores past the caches, against a plain
// loop over elements.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "host/carry.hpp"
#include "host/copy.hpp"
#include "host/parallel.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::offset_of;
using test::Random;

class LoweredThreshold {
 public:
  explicit LoweredThreshold(std::int64_t nbytes) : before_(stream_threshold_nbytes()) {
    set_stream_threshold_nbytes(nbytes);
  }
  LoweredThreshold(const LoweredThreshold&) = delete;
  LoweredThreshold& operator=(const LoweredThreshold&) = delete;
  ~LoweredThreshold() { set_stream_threshold_nbytes(before_); }

 private:
  std::int64_t before_;
};

struct Layouts {
  const char* name;
  Extents shape;
  Extents to_strides;    // in items
  Extents from_strides;  // in items
};

const Layouts layouts[] = {
    {"one block", {400, 1000}, {1000, 1}, {1000, 1}},
    {"pitched rows", {400, 1000}, {1000, 1}, {1024, 1}},
    {"short pitched rows", {40'000, 10}, {10, 1}, {16, 1}},
    {"a matrix transposed", {600, 700}, {700, 1}, {1, 600}},
    {"a matrix transposed to pitched rows", {600, 700}, {768, 1}, {1, 600}},
    {"power-of-two strides transposed", {512, 1024}, {1024, 1}, {1, 512}},
    {"every third item", {400'000}, {1}, {3}},
    {"scattered to every other item", {400'000}, {2}, {1}},
    {"reversed rows and columns", {400, 1000}, {1000, 1}, {-1000, -1}},
    {"channels first from channels last", {4, 3, 200, 180}, {108'000, 36'000, 180, 1}, {108'000, 1, 540, 3}},
    {"channels last from channels first", {4, 200, 180, 3}, {108'000, 540, 3, 1}, {108'000, 180, 1, 36'000}},
    {"13 channels first from last", {2, 13, 15'000}, {195'000, 15'000, 1}, {195'000, 1, 13}},
    {"13 channels last from first", {2, 15'000, 13}, {195'000, 13, 1}, {195'000, 1, 15'000}},
    {"100 channels last from first", {2, 2000, 100}, {200'000, 100, 1}, {200'000, 1, 2000}},
    {"one row repeated", {400, 1000}, {1000, 1}, {0, 1}},
    {"pitched rows of 7", {60'000, 7}, {7, 1}, {9, 1}},
    {"heads before tokens", {2, 8, 300, 48}, {115'200, 14'400, 48, 1}, {115'200, 48, 384, 1}},
    {"short axes crossed, a long one between", {2, 60'000, 3}, {180'000, 3, 1}, {1, 2, 120'000}},
    {"short axes crossed, a long one apart", {5, 12'000, 2, 3}, {96'000, 8, 3, 1}, {1, 5, 130'000, 60'000}},
    {"short rows by steps", {300, 60, 2, 7}, {840, 14, 7, 1}, {2108, 34, 17, 2}},
    {"short rows of short rows by steps", {40, 256, 4, 4}, {4096, 16, 4, 1}, {19'200, 75, 15, 3}},
    {"short rows far apart", {100, 655, 5}, {3275, 5, 1}, {17, 1720, 3}},
    {"short rows, none of which continues another", {90, 600, 5}, {4500, 7, 1}, {5, 450, 1}},
    {"a permuted cube", {60, 70, 80}, {5600, 80, 1}, {1, 60, 4200}},
};

// A tensor with room for guard bytes on both sides.
struct Guarded {
  Guarded(DType dtype, const Extents& shape, const Extents& item_strides, std::int64_t misalignment) {
    const std::int64_t itemsize = info(dtype).itemsize;
    std::int64_t below = 0;
    std::int64_t above = 0;
    Extents strides(shape.size());
    for (int axis = 0; axis < shape.size(); ++axis) {
      strides[axis] = item_strides[axis] * itemsize;
      (strides[axis] < 0 ? below : above) += (shape[axis] - 1) * strides[axis];
    }
    bytes.resize(static_cast<std::size_t>(above - below + itemsize + 256));
    ref = test::tensor(bytes.data() + 128 + misalignment - below, dtype, shape, strides);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  std::vector<std::byte> bytes;
  TensorRef ref;
};

void fill(Random& random, std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    const std::uint64_t bits = random.bits();
    std::memcpy(bytes.data() + at, &bits, std::min<std::size_t>(8, bytes.size() - at));
  }
}

// Compares with `expected_item(to, from)` for each pair of items, and all other bytes with what they were.
template <class Expected>
void compare(DType to, DType from, const Layouts& l, int threads, Expected&& expected_item) {
  SCOPED_TRACE(std::string(l.name) + ", " + std::string(info(from).name) + " to " + std::string(info(to).name) + ", " +
               std::to_string(threads) + " threads");
  Random random(71);
  for (const std::int64_t misalignment : {0, 1}) {
    Guarded source(from, l.shape, l.from_strides, misalignment * 3);
    Guarded result(to, l.shape, l.to_strides, misalignment * 5);
    fill(random, source.bytes);
    fill(random, result.bytes);
    std::vector<std::byte> expected = result.bytes;
    const std::int64_t start = result.ref.data - result.bytes.data();
    const std::int64_t count = element_count(l.shape).value();
    for (std::int64_t flat = 0; flat < count; ++flat) {
      expected_item(expected.data() + start + offset_of(result.ref.layout, flat),
                    source.ref.data + offset_of(source.ref.layout, flat));
    }
    const ThreadLimit limit(threads);
    copy(result.ref, source.ref);
    ASSERT_TRUE(result.bytes == expected) << "misaligned by " << misalignment;
  }
}

void compare_all(int threads) {
  for (const Layouts& l : layouts) {
    for (const DType dtype : {DType::uint8, DType::int16, DType::float32, DType::float64, DType::complex128}) {
      const auto itemsize = static_cast<std::size_t>(info(dtype).itemsize);
      compare(dtype, dtype, l, threads,
              [itemsize](std::byte* to, const std::byte* from) { std::memcpy(to, from, itemsize); });
    }
    compare(DType::float64, DType::int16, l, threads, [](std::byte* to, const std::byte* from) {
      std::int16_t value;
      std::memcpy(&value, from, sizeof(value));
      const double wide = value;
      std::memcpy(to, &wide, sizeof(wide));
    });
    compare(DType::bool_, DType::bool_, l, threads,
            [](std::byte* to, const std::byte* from) { *to = std::byte{*from != std::byte{0}}; });
    compare(DType::uint8, DType::uint64, l, threads, [](std::byte* to, const std::byte* from) { *to = *from; });
  }
}

TEST(Carry, AgreesWithAPlainLoopOnOneThread) { compare_all(1); }

TEST(Carry, AgreesWithAPlainLoopOnThreeThreads) { compare_all(3); }

TEST(Carry, AgreesWithAPlainLoopPastTheCaches) {
  const LoweredThreshold lowered(4096);
  compare_all(1);
}

TEST(Carry, AgreesWithAPlainLoopPastTheCachesOnThreeThreads) {
  const LoweredThreshold lowered(4096);
  compare_all(3);
}

TEST(Carry, FindsTheFirstChangeInShortRows) {
  std::vector<std::int32_t> source(9 * 30'000, 7);
  std::vector<std::int8_t> result(7 * 30'000);
  const TensorRef rows = test::tensor(source.data(), DType::int32, {30'000, 7}, {36, 4});
  const TensorRef packed = test::tensor(result.data(), DType::int8, {30'000, 7}, {7, 1});
  const ThreadLimit limit(3);
  source[9 * 20'000 + 8] = 128;  // between rows
  EXPECT_FALSE(copy_same_value(packed, rows));
  EXPECT_EQ(result, std::vector<std::int8_t>(result.size(), 7));
  source[9 * 20'000 + 3] = 128;
  source[9 * 25'000 + 1] = 128;
  const auto mismatch = copy_same_value(packed, rows);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->index, 7 * 20'000 + 3);
}

TEST(Carry, FindsTheFirstChangeInALargeCastOnSeveralThreads) {
  std::vector<std::int32_t> source(1'000'000, 7);
  std::vector<std::int8_t> result(source.size());
  const ThreadLimit limit(3);
  EXPECT_FALSE(copy_same_value(test::over(result, DType::int8), test::over(source, DType::int32)));
  EXPECT_EQ(result, std::vector<std::int8_t>(source.size(), 7));
  source[901'234] = 128;
  source[987'654] = -129;
  const auto mismatch = copy_same_value(test::over(result, DType::int8), test::over(source, DType::int32));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->index, 901'234);
}

}  // namespace
}  // namespace ferry
