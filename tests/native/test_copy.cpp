#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <complex>

#include "core/error.hpp"
#include "host/copy.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::element;
using test::offset_of;
using test::over;
using test::Random;
using test::random_shape;
using test::random_strided;
using test::set_element;
using test::Strided;
using test::tensor;

using Bytes = std::vector<std::uint8_t>;

// Bytes of the destination that no element covers must stay as they were.
void expect_gaps_untouched(const Strided& before, const Strided& after) {
  std::vector<bool> covered(after.memory.size(), false);
  const std::int64_t start = after.ref.data - after.memory.data();
  const std::int64_t count = element_count(after.ref.layout.shape).value();
  for (std::int64_t flat = 0; flat < count; ++flat) {
    const std::int64_t at = start + offset_of(after.ref.layout, flat);
    for (std::int64_t i = 0; i < after.ref.layout.itemsize; ++i) covered[static_cast<std::size_t>(at + i)] = true;
  }
  for (std::size_t i = 0; i < covered.size(); ++i) {
    if (covered[i]) continue;
    EXPECT_EQ(before.memory[i], after.memory[i]) << "byte " << i;
  }
}

Strided duplicate(const Strided& original) {
  Strided result = original;
  result.ref.data = result.memory.data() + (original.ref.data - original.memory.data());
  return result;
}

TEST(CopySameDtype, MovesEveryBitBetweenAnyTwoLayouts) {
  Random random(1);
  for (const DType dtype : {DType::uint8, DType::bfloat16, DType::float32, DType::complex64, DType::complex128,
                            DType::float8_e4m3fn, DType::float4_e2m1fn_x2}) {
    SCOPED_TRACE(info(dtype).name);
    for (int round = 0; round < 100; ++round) {
      const int least = dtype == DType::float4_e2m1fn_x2 ? 1 : 0;
      const Extents shape = random_shape(random, static_cast<int>(random.between(least, 5)));
      const Strided source = random_strided(random, dtype, shape, false);
      const Strided destination = random_strided(random, dtype, shape, false);
      const Strided before = duplicate(destination);
      copy(destination.ref, source.ref);
      const std::int64_t count = element_count(shape).value();
      for (std::int64_t flat = 0; flat < count; ++flat) {
        EXPECT_TRUE(std::equal(source.ref.data + offset_of(source.ref.layout, flat),
                               source.ref.data + offset_of(source.ref.layout, flat) + info(dtype).itemsize,
                               destination.ref.data + offset_of(destination.ref.layout, flat)));
      }
      expect_gaps_untouched(before, destination);
    }
  }
}

TEST(CopyAnyDtype, ConvertsBetweenAnyTwoLayouts) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 5)));
    const Strided source = random_strided(random, DType::int16, shape, false);
    const Strided destination = random_strided(random, DType::float64, shape, false);
    const Strided before = duplicate(destination);
    copy(destination.ref, source.ref);
    const std::int64_t count = element_count(shape).value();
    for (std::int64_t flat = 0; flat < count; ++flat) {
      EXPECT_EQ(element<double>(destination.ref, flat), element<std::int16_t>(source.ref, flat));
    }
    expect_gaps_untouched(before, destination);
  }
}

TEST(CopySameDtype, KeepsNaNPayloads) {
  std::vector<std::uint32_t> source{0x7F800001U, 0xFFC12345U};
  std::vector<std::uint32_t> destination(2);
  copy(over(destination, DType::float32), over(source, DType::float32));
  EXPECT_EQ(destination, source);
}

TEST(CopySameDtype, NormalisesBooleans) {
  Bytes source{0, 1, 2, 255};
  Bytes destination(4, 9);
  copy(over(destination, DType::bool_), over(source, DType::bool_));
  EXPECT_EQ(destination, (Bytes{0, 1, 1, 1}));
}

TEST(CopySameDtype, NormalisesBooleansInAnyTwoLayouts) {
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 5)));
    const Strided source = random_strided(random, DType::bool_, shape, false);
    const Strided destination = random_strided(random, DType::bool_, shape, round % 2 == 0);
    const Strided before = duplicate(destination);
    copy(destination.ref, source.ref);
    const std::int64_t count = element_count(shape).value();
    for (std::int64_t flat = 0; flat < count; ++flat) {
      const int truth = element<std::uint8_t>(source.ref, flat) != 0 ? 1 : 0;
      ASSERT_EQ(element<std::uint8_t>(destination.ref, flat), truth);
    }
    expect_gaps_untouched(before, destination);
  }
}

TEST(CopySameDtype, ClearsTheUnusedBitsOfSmallIntegers) {
  Bytes source{0xF7, 0x0F};
  Bytes destination(2);
  copy(over(destination, DType::int4), over(source, DType::int4));
  EXPECT_EQ(destination, (Bytes{0x07, 0x0F}));
}

TEST(CopyByteOrder, ReversesNumbersAndPartsOfComplexNumbers) {
  std::vector<std::uint64_t> source{0x0102030405060708U};
  std::vector<std::uint64_t> destination(1);
  const auto swapped_copy = [&](DType dtype) {
    TensorRef from = over(source, dtype);
    from.byte_swapped = true;
    copy(over(destination, dtype), from);
    return destination[0];
  };
  EXPECT_EQ(swapped_copy(DType::int64), 0x0807060504030201U);
  EXPECT_EQ(swapped_copy(DType::complex64), 0x0403020108070605U);
  std::vector<std::uint16_t> halves{0x1234};
  std::vector<std::uint16_t> reversed(1);
  TensorRef to = over(reversed, DType::bfloat16);
  to.byte_swapped = true;
  copy(to, over(halves, DType::bfloat16));
  EXPECT_EQ(reversed[0], 0x3412);
}

TEST(CopyByteOrder, KeepsTheBytesWhenBothSidesAreSwapped) {
  std::vector<std::uint32_t> source{0x7F800001U};
  std::vector<std::uint32_t> destination(1);
  TensorRef from = over(source, DType::float32);
  TensorRef to = over(destination, DType::float32);
  from.byte_swapped = to.byte_swapped = true;
  copy(to, from);
  EXPECT_EQ(destination, source);
}

TEST(CopyByteOrder, IsHonouredOnBothSidesOfACast) {
  std::vector<std::uint16_t> source{0x0201};  // 0x0102 with its bytes swapped
  std::vector<std::uint32_t> destination(1);
  TensorRef from = over(source, DType::uint16);
  TensorRef to = over(destination, DType::float32);
  from.byte_swapped = to.byte_swapped = true;
  copy(to, from);
  EXPECT_EQ(std::bit_cast<float>(__builtin_bswap32(destination[0])), 258.0F);
}

TEST(CopyMarks, ConjugatesAndNegatesTheSource) {
  using Complex = std::complex<float>;
  std::vector<Complex> source{{1, 2}, {-3, -4}};
  std::vector<Complex> destination(2);
  TensorRef from = over(source, DType::complex64);
  from.conjugated = true;
  copy(over(destination, DType::complex64), from);
  EXPECT_EQ(destination, (std::vector<Complex>{{1, -2}, {-3, 4}}));
  from.negated = true;
  std::vector<std::complex<double>> wide(2);
  copy(over(wide, DType::complex128), from);
  EXPECT_EQ(wide, (std::vector<std::complex<double>>{{-1, 2}, {3, -4}}));
}

TEST(CopyMarks, StoresIntoAMarkedDestinationSoThatItReadsTheSame) {
  std::vector<float> source{5.0F};
  std::vector<float> destination(1);
  TensorRef to = over(destination, DType::float32);
  to.negated = true;
  copy(to, over(source, DType::float32));
  EXPECT_EQ(destination[0], -5.0F);
  TensorRef from = over(source, DType::float32);
  from.negated = true;
  copy(to, from);
  EXPECT_EQ(destination[0], 5.0F);
}

TEST(CopyMarks, DoNotConjugateRealNumbers) {
  std::vector<std::uint32_t> source{0x7F800001U};
  std::vector<std::uint32_t> destination(1);
  TensorRef from = over(source, DType::float32);
  from.conjugated = true;
  copy(over(destination, DType::float32), from);
  EXPECT_EQ(destination, source);
}

TEST(CopyBroadcast, RepeatsASourceOfStrideZero) {
  std::vector<std::int32_t> source{7, 8};
  std::vector<std::int32_t> same(6);
  std::vector<std::int64_t> wide(6);
  const TensorRef from = tensor(source.data(), DType::int32, {2, 3}, {4, 0});
  copy(tensor(same.data(), DType::int32, {2, 3}, {12, 4}), from);
  copy(tensor(wide.data(), DType::int64, {2, 3}, {24, 8}), from);
  EXPECT_EQ(same, (std::vector<std::int32_t>{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(wide, (std::vector<std::int64_t>{7, 7, 7, 8, 8, 8}));
}

TEST(CopyLongRows, CrossesBlocks) {
  std::vector<std::int16_t> source(1000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::int16_t>(i * 7);
  std::vector<float> destination(source.size());
  copy(over(destination, DType::float32), over(source, DType::int16));
  EXPECT_TRUE(std::equal(source.begin(), source.end(), destination.begin()));
}

TEST(CopyPacked, UnpacksAlongTheLastAxisOfAnyLayout) {
  Random random(4);
  // e2m1 by hand, in the order of the codes.
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (int round = 0; round < 200; ++round) {
    Extents items = random_shape(random, static_cast<int>(random.between(1, 4)));
    if (round % 10 == 0) items[items.size() - 1] = 300;  // more than a block
    Extents elements = items;
    elements[elements.size() - 1] *= 2;
    const Strided packed = random_strided(random, DType::float4_e2m1fn_x2, items);
    const Strided unpacked = random_strided(random, DType::float32, elements, false);
    copy(unpacked.ref, packed.ref);
    const std::int64_t count = element_count(elements).value();
    for (std::int64_t flat = 0; flat < count; ++flat) {
      const unsigned pair = element<std::uint8_t>(packed.ref, flat / 2);
      EXPECT_EQ(element<float>(unpacked.ref, flat), values[flat % 2 == 0 ? pair & 15U : pair >> 4U]);
    }
    const Strided repacked = random_strided(random, DType::float4_e2m1fn_x2, items);
    copy(repacked.ref, unpacked.ref);
    for (std::int64_t flat = 0; flat < count / 2; ++flat) {
      EXPECT_EQ(element<std::uint8_t>(repacked.ref, flat), element<std::uint8_t>(packed.ref, flat));
    }
  }
}

TEST(CopyPacked, UnpacksToItsOwnUnpackedTypeAndNegates) {
  Bytes pairs{0x21, 0xF0};
  Bytes codes(4);
  TensorRef from = over(pairs, DType::float4_e2m1fn_x2);
  copy(over(codes, DType::float4_e2m1fn), from);
  EXPECT_EQ(codes, (Bytes{1, 2, 0, 15}));
  from.negated = true;
  Bytes negated(2);
  copy(over(negated, DType::float4_e2m1fn_x2), from);
  EXPECT_EQ(negated, (Bytes{0xA9, 0x78}));
}

TEST(CopyShapes, RefusesUnequalOnesAndOddPackedOnes) {
  std::vector<std::uint8_t> memory(16);
  const auto refused = [&](DType to, const Extents& to_shape, DType from, const Extents& from_shape) {
    try {
      copy(tensor(memory.data(), to, to_shape, Extents(to_shape.size(), 1)),
           tensor(memory.data() + 8, from, from_shape, Extents(from_shape.size(), 1)));
    } catch (const Error& error) {
      return error.kind() == ErrorKind::layout;
    }
    return false;
  };
  EXPECT_TRUE(refused(DType::int8, {2, 3}, DType::int8, {3, 2}));
  EXPECT_TRUE(refused(DType::int8, {1}, DType::int8, {}));
  EXPECT_TRUE(refused(DType::float4_e2m1fn_x2, {2}, DType::float4_e2m1fn, {3}));
  EXPECT_TRUE(refused(DType::float4_e2m1fn, {}, DType::float4_e2m1fn_x2, {}));
}

TEST(CopyEmpty, TouchesNoMemory) {
  const std::int64_t huge = std::int64_t{1} << 40;
  copy(tensor(nullptr, DType::float32, {huge, 0, huge}, {4, 4, 4}),
       tensor(nullptr, DType::int64, {huge, 0, huge}, {8, 8, 8}));
  EXPECT_FALSE(copy_same_value(tensor(nullptr, DType::int8, {0}, {1}), tensor(nullptr, DType::int64, {0}, {8})));
}

}  // namespace
}  // namespace ferry
