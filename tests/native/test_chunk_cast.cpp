// Casts with marks at either end, and their check, by kernels against blocks of carriers.
#include <gtest/gtest.h>

#include <complex>
#include <cstring>

#include "cast_values.hpp"
#include "host/block_cast.hpp"
#include "host/chunk_cast.hpp"
#include "host/copy.hpp"

namespace ferry {
namespace {

using test::Bytes;
using test::over;
using test::Random;
using test::tensor;

constexpr std::int64_t count = 1200;  // more than two chunks

struct Side {
  DType dtype;
  bool swapped = false;
  bool conjugated = false;
  bool negated = false;
};

TensorRef marked(std::byte* data, const Side& side, std::int64_t step) {
  TensorRef ref = tensor(data, side.dtype, {count}, {step});
  ref.byte_swapped = side.swapped;
  ref.conjugated = side.conjugated;
  ref.negated = side.negated;
  return ref;
}

// By carriers; tells whether every value survived.
bool through_blocks(const TensorRef& to, std::int64_t to_step, const TensorRef& from, std::int64_t from_step) {
  const ElementIO to_io = element_io(to.dtype, to.byte_swapped);
  const ElementIO from_io = element_io(from.dtype, from.byte_swapped);
  const BlockCast cast(to.dtype, from.dtype);
  const CompareBlocks difference = block_comparison(from_io.carrier, to_io.carrier);
  Block values;
  Block results;
  bool survived = true;
  for_each_block(count, [&](std::int64_t first, std::int64_t length) {
    from_io.load(from.data + first * from_step, from_step, length, values);
    apply_bits(from, values, length);
    cast(values, results, length);
    apply_bits(to, results, length);
    to_io.store(to.data + first * to_step, to_step, length, results);
    to_io.load(to.data + first * to_step, to_step, length, results);
    apply_bits(to, results, length);
    if (difference(values, results, length) >= 0) survived = false;
  });
  return survived;
}

Bytes sample(Random& random, DType dtype, std::int64_t step) {
  const Bytes all = test::values(dtype, random);
  const std::int64_t itemsize = info(dtype).itemsize;
  const std::int64_t items = static_cast<std::int64_t>(all.size()) / itemsize;
  Bytes bytes(static_cast<std::size_t>(count * step + itemsize));
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + i * step, all.data() + random.between(0, items - 1) * itemsize,
                static_cast<std::size_t>(itemsize));
  }
  return bytes;
}

// Bytes of small whole numbers, which most casts keep: then a check must not cry out.
Bytes survivors(Random& random, const Side& side, std::int64_t step) {
  std::vector<std::int8_t> numbers(static_cast<std::size_t>(count));
  for (std::int8_t& number : numbers) number = static_cast<std::int8_t>(random.between(0, 1));
  Bytes bytes(static_cast<std::size_t>(count * step + info(side.dtype).itemsize));
  through_blocks(marked(bytes.data(), side, step), step,
                 tensor(reinterpret_cast<std::byte*>(numbers.data()), DType::int8, {count}, {1}), 1);
  return bytes;
}

void compare(const Side& to, std::int64_t to_step, const Side& from, std::int64_t from_step, Bytes source) {
  Bytes expected(static_cast<std::size_t>(count * to_step + 16), std::byte{0x5A});
  Bytes result = expected;
  const TensorRef from_ref = marked(source.data(), from, from_step);
  const TensorRef expected_ref = marked(expected.data(), to, to_step);
  const TensorRef result_ref = marked(result.data(), to, to_step);
  ChunkCast chunks(result_ref, from_ref);
  ASSERT_TRUE(chunks.is_possible());
  const bool survives = through_blocks(expected_ref, to_step, from_ref, from_step);
  EXPECT_TRUE(chunks(result.data(), to_step, source.data(), from_step, count, false));
  ASSERT_TRUE(result == expected);
  std::fill(result.begin(), result.end(), std::byte{0x5A});
  EXPECT_EQ(chunks(result.data(), to_step, source.data(), from_step, count, true), survives);
  ASSERT_TRUE(result == expected);
}

TEST(ChunkCast, GivesTheBitsAndTheVerdictOfTheBlockPath) {
  Random random(81);
  for (const DType to : test::cast_dtypes) {
    for (const DType from : test::cast_dtypes) {
      if (to == from) continue;
      SCOPED_TRACE(std::string(info(from).name) + " to " + std::string(info(to).name));
      for (int round = 0; round < 4; ++round) {
        Side target{to};
        Side origin{from};
        target.swapped = round % 2 == 1;
        origin.swapped = round >= 2;
        const std::int64_t to_step = info(to).itemsize + (round == 1 ? 3 : 0);
        const std::int64_t from_step = info(from).itemsize + (round == 2 ? 5 : 0);
        compare(target, to_step, origin, from_step, sample(random, from, from_step));
        compare(target, to_step, origin, from_step, survivors(random, origin, from_step));
      }
    }
  }
}

// One value at a time: a verdict on many says nothing of the others.
TEST(ChunkCast, JudgesEachValueAsTheBlockPathDoes) {
  Random random(82);
  for (const DType to : test::cast_dtypes) {
    for (const DType from : test::cast_dtypes) {
      if (to == from) continue;
      SCOPED_TRACE(std::string(info(from).name) + " to " + std::string(info(to).name));
      const Bytes all = test::values(from, random);
      const std::int64_t itemsize = info(from).itemsize;
      const std::int64_t items = static_cast<std::int64_t>(all.size()) / itemsize;
      std::vector<std::byte> target(16);
      const TensorRef to_ref = tensor(target.data(), to, {1}, {info(to).itemsize});
      ValueCheck check(to, from);
      const BlockCast cast(to, from);
      const ElementIO to_io = element_io(to, false);
      const ElementIO from_io = element_io(from, false);
      const CompareBlocks difference = block_comparison(from_io.carrier, to_io.carrier);
      Block values;
      Block results;
      const std::int64_t stride = std::max<std::int64_t>(items / 3000, 1);
      for (std::int64_t i = 0; i < items; i += i < 4000 ? 1 : stride) {
        const std::byte* item = all.data() + i * itemsize;
        from_io.load(item, itemsize, 1, values);
        cast(values, results, 1);
        to_io.store(to_ref.data, 1, 1, results);
        to_io.load(to_ref.data, 1, 1, results);
        ASSERT_EQ(check(to_ref.data, item, 1), difference(values, results, 1) < 0) << "item " << i;
      }
    }
  }
}

TEST(ChunkCast, NegatesAndConjugatesOnTheWay) {
  Random random(83);
  const Side sides[] = {{DType::float16, false, false, true},    {DType::float32, true, false, true},
                        {DType::bfloat16, false, false, true},   {DType::complex64, false, true, false},
                        {DType::complex64, true, true, true},    {DType::complex128, true, false, true},
                        {DType::complex32, true, true, false},   {DType::float64, false, false, true},
                        {DType::float8_e5m2, false, false, true}};
  const Side plain[] = {{DType::int32}, {DType::float64, true}, {DType::complex128}, {DType::bool_}, {DType::float16}};
  for (const Side& side : sides) {
    for (const Side& other : plain) {
      if (side.dtype == other.dtype) continue;
      SCOPED_TRACE(std::string(info(side.dtype).name) + " and " + std::string(info(other.dtype).name));
      const std::int64_t side_step = info(side.dtype).itemsize;
      const std::int64_t other_step = info(other.dtype).itemsize;
      compare(other, other_step, side, side_step, sample(random, side.dtype, side_step));
      compare(side, side_step, other, other_step, sample(random, other.dtype, other_step));
    }
    for (const Side& to : sides) {
      if (to.dtype == side.dtype) continue;
      SCOPED_TRACE(std::string(info(side.dtype).name) + " to " + std::string(info(to.dtype).name));
      compare(to, info(to.dtype).itemsize + 1, side, info(side.dtype).itemsize,
              sample(random, side.dtype, info(side.dtype).itemsize));
    }
  }
}

TEST(ChunkCast, LeavesToCarriersWhatHasNoKernel) {
  std::byte memory[16]{};
  const auto possible = [&memory](const Side& to, const Side& from) {
    return ChunkCast(marked(memory, to, 1), marked(memory, from, 1)).is_possible();
  };
  EXPECT_TRUE(possible({DType::float32}, {DType::float64}));
  EXPECT_FALSE(possible({DType::float32}, {DType::float4_e2m1fn}));
  EXPECT_FALSE(possible({DType::int4}, {DType::float32}));
  EXPECT_FALSE(possible({DType::float32}, {DType::int32, false, false, true}));
  EXPECT_FALSE(possible({DType::float8_e5m2fnuz, false, false, true}, {DType::float32}));
}

TEST(ChunkCast, TakesMemoryForWhatItsMarksSay) {
  std::vector<std::int16_t> source{1, -2};
  std::vector<double> result(2);
  TensorRef from = over(source, DType::int16);
  from.negated = true;
  copy(over(result, DType::float64), from);
  EXPECT_EQ(result, (std::vector<double>{-1.0, 2.0}));
  from.negated = false;
  from.byte_swapped = true;
  copy(over(result, DType::float64), from);
  EXPECT_EQ(result, (std::vector<double>{256.0, -257.0}));
  std::vector<std::complex<float>> numbers{{1.0F, 2.0F}};
  std::vector<std::complex<double>> wide(1);
  TensorRef conjugate = over(numbers, DType::complex64);
  conjugate.conjugated = true;
  copy(over(wide, DType::complex128), conjugate);
  EXPECT_EQ(wide[0], std::complex<double>(1.0, -2.0));
  std::vector<std::uint32_t> payload{0x7FC12345U};
  TensorRef negated = over(payload, DType::float32);
  negated.negated = true;
  std::vector<std::uint32_t> same(1);
  copy(over(same, DType::float32), negated);
  EXPECT_EQ(same[0], 0xFFC12345U);
}

}  // namespace
}  // namespace ferry
