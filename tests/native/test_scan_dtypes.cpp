// Scans of every dtype and layout on every processor level, against a plain loop.
#include <algorithm>
#include <array>
#include <limits>

#include "host/parallel.hpp"
#include "kernel_level.hpp"
#include "scan_values.hpp"

namespace ferry {
namespace {

using test::agree;
using test::plain_nonfinite;
using test::plain_outside;
using test::Random;
using test::random_shape;
using test::random_strided;
using test::Strided;
using test::tensor;

constexpr double infinity = std::numeric_limits<double>::infinity();

DType dtype_at(std::size_t i) { return static_cast<DType>(i); }

// Random bits hardly ever make a wide float NaN or infinite.
void plant(Random& random, const Strided& strided) {
  const DType dtype = strided.ref.dtype;
  const int nbytes = info(dtype).kind == Kind::complex ? info(dtype).itemsize / 2 : info(dtype).itemsize;
  const std::int64_t count = element_count(strided.ref.layout.shape).value();
  if (nbytes < 4 || info(dtype).kind == Kind::signed_integer || info(dtype).kind == Kind::unsigned_integer) return;
  for (std::int64_t times = random.between(0, 3); times > 0; --times) {
    std::byte* at = strided.ref.data + test::offset_of(strided.ref.layout, random.between(0, count - 1));
    if (info(dtype).kind == Kind::complex) at += random.between(0, 1) * nbytes;
    if (nbytes == 4) {
      const float value = static_cast<float>(random.between(0, 1) == 0 ? infinity : -std::nan(""));
      std::memcpy(at, &value, sizeof(value));
    } else {
      const double value = random.between(0, 1) == 0 ? -infinity : std::nan("");
      std::memcpy(at, &value, sizeof(value));
    }
    std::array<std::byte, 8> bytes;
    std::memcpy(bytes.data(), at, static_cast<std::size_t>(nbytes));
    if (strided.ref.byte_swapped) std::reverse(bytes.begin(), bytes.begin() + nbytes);
    std::memcpy(at, bytes.data(), static_cast<std::size_t>(nbytes));
  }
}

// A value of the tensor, or one beside it, or something else.
double random_bound(Random& random, const TensorRef& ref) {
  if (random.between(0, 9) == 0) return random.between(0, 1) == 0 ? infinity : -infinity;
  if (random.between(0, 9) == 0) return static_cast<double>(random.between(-3, 3));
  const std::int64_t flat = random.between(0, element_count(ref.layout.shape).value() - 1);
  const auto value = static_cast<double>(test::value_at(ref, ref.data + test::offset_of(ref.layout, flat)));
  if (!(value == value)) return 0.0;
  if (random.between(0, 1) == 0) return value;
  return std::nextafter(value, random.between(0, 1) == 0 ? infinity : -infinity);
}

Strided random_tensor(Random& random, DType dtype) {
  const int least = info(dtype).elements_per_item > 1 ? 1 : 0;
  Extents shape = random_shape(random, static_cast<int>(random.between(least, 4)));
  if (!shape.empty() && random.between(0, 2) == 0) shape[0] = random.between(1, 700);
  Strided strided = random_strided(random, dtype, shape, false);
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (random.between(0, 5) == 0) strided.ref.layout.strides[axis] = 0;
  }
  strided.ref.byte_swapped = random.between(0, 2) == 0 && info(dtype).itemsize > 1;
  plant(random, strided);
  return strided;
}

class ScanOnLevel : public test::KernelTest {};

TEST_P(ScanOnLevel, FindsWhatAPlainLoopFindsNotFinite) {
  Random random(1001);
  for (std::size_t i = 0; i < dtype_count; ++i) {
    SCOPED_TRACE(info(dtype_at(i)).name);
    for (int round = 0; round < 60; ++round) {
      const Strided strided = random_tensor(random, dtype_at(i));
      ASSERT_TRUE(agree(scan_nonfinite(strided.ref, level()), plain_nonfinite(strided.ref)));
    }
  }
}

TEST_P(ScanOnLevel, FindsWhatAPlainLoopFindsOutside) {
  Random random(1002);
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (info(dtype_at(i)).kind == Kind::complex) continue;
    SCOPED_TRACE(info(dtype_at(i)).name);
    for (int round = 0; round < 120; ++round) {
      Strided strided = random_tensor(random, dtype_at(i));
      strided.ref.negated =
          info(dtype_at(i)).numpy_native && info(dtype_at(i)).kind == Kind::floating && round % 4 == 0;
      const double low = random_bound(random, strided.ref);
      const double high = random.between(0, 9) == 0 ? low : random_bound(random, strided.ref);
      SCOPED_TRACE(::testing::Message() << "from " << low << " to " << high);
      ASSERT_TRUE(agree(scan_outside(strided.ref, low, high, level()), plain_outside(strided.ref, low, high)));
    }
  }
}

TEST_P(ScanOnLevel, KnowsEveryCodeOfTheSmallFormats) {
  std::vector<std::uint16_t> codes(65536);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const DTypeInfo& type = info(dtype_at(i));
    if (type.kind != Kind::floating || type.itemsize > 2 || type.elements_per_item > 1) continue;
    SCOPED_TRACE(type.name);
    std::vector<std::uint8_t> bytes(256);
    for (std::size_t code = 0; code < bytes.size(); ++code) bytes[code] = static_cast<std::uint8_t>(code);
    const TensorRef ref = type.itemsize == 2 ? test::over(codes, dtype_at(i)) : test::over(bytes, dtype_at(i));
    EXPECT_TRUE(agree(scan_nonfinite(ref, level()), plain_nonfinite(ref)));
    for (const double low : {-infinity, -1.0, -0.0, 0.0, 1e-30, 0.3, 448.0, 1e9}) {
      for (const double high : {-0.3, 0.0, 1e-30, 57344.0, 1e300, infinity}) {
        EXPECT_TRUE(agree(scan_outside(ref, low, high, level()), plain_outside(ref, low, high))) << low << " " << high;
      }
    }
  }
}

TEST_P(ScanOnLevel, CountsALongRowThatIsAllBad) {
  std::vector<std::uint8_t> bytes((1U << 20U) + 77U, 0x7F);
  const TensorRef ref = test::over(bytes, DType::float8_e4m3fn);
  EXPECT_TRUE(agree(scan_nonfinite(ref, level()), {static_cast<std::int64_t>(bytes.size()), 0}));
  const TensorRef numbers = test::over(bytes, DType::int8);
  EXPECT_TRUE(agree(scan_outside(numbers, 0, 126, level()), {static_cast<std::int64_t>(bytes.size()), 0}));
}

TEST_P(ScanOnLevel, FindsTheFirstOfAFewInLargeTensorsOnSeveralThreads) {
  Random random(1003);
  const ThreadLimit threads(3);
  std::vector<float> values(3U << 20U, 1.0F);
  const auto count = static_cast<std::int64_t>(values.size());
  const auto square = [&](std::int64_t across, std::int64_t down) {
    return tensor(values.data(), DType::float32, {1536, 2048}, {across, down});
  };
  for (int round = 0; round < 6; ++round) {
    std::vector<std::size_t> planted;
    for (std::int64_t times = random.between(0, 3); times > 0; --times) {
      planted.push_back(static_cast<std::size_t>(random.between(0, count - 1)));
      values[planted.back()] = static_cast<float>(infinity);
    }
    for (const TensorRef& ref : {square(8192, 4), square(4, 6144)}) {
      const ScanReport expected = plain_nonfinite(ref);
      EXPECT_TRUE(agree(scan_nonfinite(ref, level()), expected));
      EXPECT_TRUE(agree(scan_outside(ref, 0.5, 1.5, level()), expected));
    }
    for (const std::size_t at : planted) values[at] = 1.0F;
  }
}

FERRY_FOR_EACH_LEVEL(ScanOnLevel);

TEST(ScanNonfinite, KnowsThatAnExponentHasNoNegative) {
  std::vector<std::uint8_t> exponents{127, 0xFF};
  TensorRef negated = test::over(exponents, DType::float8_e8m0fnu);
  negated.negated = true;
  EXPECT_TRUE(agree(scan_nonfinite(negated), {2, 0}));
}

TEST(ScanOutside, WrapsNegatedIntegersAtTheirOwnWidth) {
  std::vector<std::int8_t> values{-128, 127, 0, 5};  // stand for -128, -127, 0 and -5
  TensorRef negated = test::over(values, DType::int8);
  negated.negated = true;
  EXPECT_TRUE(agree(scan_outside(negated, -128, -127), {2, 2}));
  EXPECT_TRUE(agree(scan_outside(negated, -5, 0), {2, 0}));
}

}  // namespace
}  // namespace ferry
