#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

#include "core/dtype.hpp"

namespace ferry {
namespace {

TEST(DType, IsFoundByItsOwnName) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(info(dtype).name), dtype) << info(dtype).name;
  }
  EXPECT_EQ(dtype_from_name("bool"), DType::bool_);
  EXPECT_FALSE(dtype_from_name("float31"));
}

TEST(DType, HasOneDLPackTripleEach) {
  std::set<std::tuple<int, int, int>> seen;
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const DTypeInfo& d = info(static_cast<DType>(i));
    EXPECT_TRUE(seen.insert({d.dlpack_code, d.dlpack_bits, d.dlpack_lanes}).second) << d.name;
  }
}

TEST(DType, StoresItsValueBitsInItsItem) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const DTypeInfo& d = info(static_cast<DType>(i));
    EXPECT_LE(d.value_bits * d.elements_per_item, d.itemsize * 8) << d.name;
    EXPECT_GT(d.value_bits * d.elements_per_item, d.itemsize * 8 - 8) << d.name;
  }
}

TEST(DType, AlignsComplexNumbersAsTheirParts) {
  EXPECT_EQ(alignment(DType::complex32), 2U);
  EXPECT_EQ(alignment(DType::complex64), 4U);
  EXPECT_EQ(alignment(DType::complex128), 8U);
  EXPECT_EQ(alignment(DType::float64), 8U);
  EXPECT_EQ(alignment(DType::int4), 1U);
}

TEST(DType, HasUnsignedBitsUpToEightBytes) {
  EXPECT_EQ(bits_dtype(DType::bool_), DType::uint8);
  EXPECT_EQ(bits_dtype(DType::bfloat16), DType::uint16);
  EXPECT_EQ(bits_dtype(DType::float32), DType::uint32);
  EXPECT_EQ(bits_dtype(DType::complex64), DType::uint64);
  EXPECT_FALSE(bits_dtype(DType::complex128));
}

TEST(DType, WidensToTheSmallestNativeTypeThatHoldsEveryValue) {
  EXPECT_EQ(native_dtype(DType::bfloat16), DType::float32);
  EXPECT_EQ(native_dtype(DType::float8_e8m0fnu), DType::float32);
  EXPECT_EQ(native_dtype(DType::float8_e5m2), DType::float16);
  EXPECT_EQ(native_dtype(DType::float8_e4m3b11fnuz), DType::float16);
  EXPECT_EQ(native_dtype(DType::float4_e2m1fn_x2), DType::float16);
  EXPECT_EQ(native_dtype(DType::int4), DType::int8);
  EXPECT_EQ(native_dtype(DType::uint1), DType::uint8);
  EXPECT_EQ(native_dtype(DType::complex32), DType::complex64);
  EXPECT_EQ(native_dtype(DType::float64), DType::float64);
}

TEST(DType, ReplacesOnlyWhatNoArrayCanHold) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    const DType expected = dtype == DType::complex32          ? DType::complex64
                           : dtype == DType::float4_e2m1fn_x2 ? DType::float4_e2m1fn
                                                              : dtype;
    EXPECT_EQ(array_dtype(dtype), expected) << info(dtype).name;
  }
}

}  // namespace
}  // namespace ferry
