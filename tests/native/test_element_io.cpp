#include <gtest/gtest.h>

#include <vector>

#include "host/element_io.hpp"
#include "support.hpp"

namespace ferry {
namespace {

template <class T>
std::vector<T> load(DType dtype, const std::vector<std::uint8_t>& bytes, std::int64_t step, std::int64_t count,
                    bool byte_swapped = false) {
  Block block;
  const auto* row = reinterpret_cast<const std::byte*>(bytes.data());
  if (step < 0) row -= (count - 1) * step;
  element_io(dtype, byte_swapped).load(row, step, count, block);
  return {block.as<T>(), block.as<T>() + count};
}

template <class T>
std::vector<std::uint8_t> store(DType dtype, const std::vector<T>& values, std::int64_t step, std::size_t nbytes,
                                bool byte_swapped = false) {
  Block block;
  std::copy(values.begin(), values.end(), block.as<T>());
  std::vector<std::uint8_t> bytes(nbytes, 0xEE);
  element_io(dtype, byte_swapped)
      .store(reinterpret_cast<std::byte*>(bytes.data()), step, static_cast<std::int64_t>(values.size()), block);
  return bytes;
}

using Bytes = std::vector<std::uint8_t>;
using Signed = std::vector<std::int64_t>;
using Unsigned = std::vector<std::uint64_t>;
using Doubles = std::vector<double>;

TEST(ElementIO, ReadsAnyNonzeroByteAsTrue) {
  EXPECT_EQ(load<std::uint64_t>(DType::bool_, {0, 1, 2, 255}, 1, 4), (Unsigned{0, 1, 1, 1}));
  EXPECT_EQ(store<std::uint64_t>(DType::bool_, {0, 1, 256}, 1, 3), (Bytes{0, 1, 1}));
}

TEST(ElementIO, TakesTheLowBitsOfSmallIntegers) {
  EXPECT_EQ(load<std::int64_t>(DType::int4, {0x0F, 0x17, 0xF8}, 1, 3), (Signed{-1, 7, -8}));
  EXPECT_EQ(load<std::int64_t>(DType::int2, {0x01, 0x02, 0xFF}, 1, 3), (Signed{1, -2, -1}));
  EXPECT_EQ(load<std::int64_t>(DType::int1, {0x00, 0x01, 0xFE}, 1, 3), (Signed{0, -1, 0}));
  EXPECT_EQ(load<std::uint64_t>(DType::uint4, {0x0F, 0x17}, 1, 2), (Unsigned{15, 7}));
  EXPECT_EQ(load<std::uint64_t>(DType::uint1, {0x03, 0x02}, 1, 2), (Unsigned{1, 0}));
  EXPECT_EQ(store<std::int64_t>(DType::int4, {-1, 7, 8, 16}, 1, 4), (Bytes{0x0F, 0x07, 0x08, 0x00}));
  EXPECT_EQ(store<std::uint64_t>(DType::uint2, {5}, 1, 1), (Bytes{0x01}));
}

TEST(ElementIO, ReadsMisalignedRowsBackwardsAndOtherByteOrders) {
  const Bytes bytes{0xFF, 0x01, 0x02, 0x03, 0x04};
  const Bytes tail(bytes.begin() + 1, bytes.end());
  EXPECT_EQ(load<std::uint64_t>(DType::uint16, tail, 2, 2), (Unsigned{0x0201, 0x0403}));
  EXPECT_EQ(load<std::uint64_t>(DType::uint16, tail, 2, 2, true), (Unsigned{0x0102, 0x0304}));
  EXPECT_EQ(load<std::uint64_t>(DType::uint16, tail, -2, 2), (Unsigned{0x0403, 0x0201}));
  EXPECT_EQ(load<std::int64_t>(DType::int32, {0xFE, 0xFF, 0xFF, 0xFF}, 4, 1), (Signed{-2}));
}

TEST(ElementIO, RepeatsAnElementOfStepZero) {
  EXPECT_EQ(load<double>(DType::float32, {0, 0, 0x80, 0x3F}, 0, 3), (Doubles{1, 1, 1}));
}

TEST(ElementIO, UnpacksPairsLowNibbleFirst) {
  // 0x2 is 1, 0xC is -2, 0x7 is 6, 0x1 is 0.5
  EXPECT_EQ(load<double>(DType::float4_e2m1fn_x2, {0xC2, 0xEE, 0x17}, 2, 4), (Doubles{1, -2, 6, 0.5}));
  EXPECT_EQ(store<double>(DType::float4_e2m1fn_x2, {1, -2, 6, 0.5}, 2, 3), (Bytes{0xC2, 0xEE, 0x17}));
}

TEST(ElementIO, SwapsThePartsOfAComplexNumberOneByOne) {
  // Halves 1.0 (0x3C00) and -2.0 (0xC000).
  using Complex = std::complex<double>;
  EXPECT_EQ(load<Complex>(DType::complex32, {0x00, 0x3C, 0x00, 0xC0}, 4, 1)[0], Complex(1, -2));
  EXPECT_EQ(load<Complex>(DType::complex32, {0x3C, 0x00, 0xC0, 0x00}, 4, 1, true)[0], Complex(1, -2));
  EXPECT_EQ(store<Complex>(DType::complex32, {Complex(1, -2)}, 4, 4, true), (Bytes{0x3C, 0x00, 0xC0, 0x00}));
}

TEST(ElementIO, LeavesTheGapsOfARowAlone) {
  EXPECT_EQ(store<std::uint64_t>(DType::uint8, {1, 2}, 2, 3), (Bytes{1, 0xEE, 2}));
}

TEST(ElementIO, CarriesEachKindInATypeThatHoldsIt) {
  EXPECT_EQ(element_io(DType::bool_, false).carrier, Carrier::uint64);
  EXPECT_EQ(element_io(DType::uint4, false).carrier, Carrier::uint64);
  EXPECT_EQ(element_io(DType::int64, true).carrier, Carrier::int64);
  EXPECT_EQ(element_io(DType::float4_e2m1fn_x2, false).carrier, Carrier::float64);
  EXPECT_EQ(element_io(DType::complex32, false).carrier, Carrier::complex128);
}

}  // namespace
}  // namespace ferry
