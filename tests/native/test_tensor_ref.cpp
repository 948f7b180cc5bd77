#include <gtest/gtest.h>

#include <array>

#include "core/tensor_ref.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::tensor;

alignas(16) std::array<std::byte, 64> memory{};

TEST(IsAligned, AsksTheAddress) {
  EXPECT_TRUE(is_aligned(tensor(memory.data(), DType::float32, {4}, {4})));
  EXPECT_FALSE(is_aligned(tensor(memory.data() + 1, DType::float32, {4}, {4})));
  EXPECT_FALSE(is_aligned(tensor(memory.data() + 2, DType::float32, {4}, {4})));
  EXPECT_TRUE(is_aligned(tensor(memory.data() + 2, DType::bfloat16, {4}, {2})));
  EXPECT_TRUE(is_aligned(tensor(memory.data() + 1, DType::uint8, {4}, {1})));
}

TEST(IsAligned, AsksEveryStrideThatMatters) {
  EXPECT_FALSE(is_aligned(tensor(memory.data(), DType::float32, {2, 2}, {10, 4})));
  EXPECT_FALSE(is_aligned(tensor(memory.data(), DType::float32, {2, 2}, {4, -6})));
  EXPECT_TRUE(is_aligned(tensor(memory.data(), DType::float32, {2, 2}, {0, -8})));
  EXPECT_TRUE(is_aligned(tensor(memory.data(), DType::float32, {1, 2}, {7, 4})));
  EXPECT_TRUE(is_aligned(tensor(memory.data(), DType::float32, {0, 2}, {7, 4})));
}

TEST(IsAligned, WantsOfAComplexNumberWhatItsPartsNeed) {
  EXPECT_TRUE(is_aligned(tensor(memory.data() + 4, DType::complex64, {2}, {12})));
  EXPECT_FALSE(is_aligned(tensor(memory.data() + 4, DType::complex128, {2}, {16})));
  EXPECT_TRUE(is_aligned(tensor(memory.data() + 8, DType::complex128, {2}, {24})));
}

TEST(IsAligned, HoldsForAScalarByItsAddressAlone) {
  EXPECT_TRUE(is_aligned(tensor(memory.data(), DType::float64, {}, {})));
  EXPECT_FALSE(is_aligned(tensor(memory.data() + 4, DType::float64, {}, {})));
}

TEST(Summary, WritesTheShapeAsPythonDoes) {
  EXPECT_EQ(summary(tensor(nullptr, DType::bfloat16, {3, 4}, {8, 2})), "a (3, 4) bfloat16 tensor");
  EXPECT_EQ(summary(tensor(nullptr, DType::bool_, {5}, {1})), "a (5,) bool tensor");
  EXPECT_EQ(summary(tensor(nullptr, DType::float64, {}, {})), "a () float64 tensor");
  EXPECT_EQ(summary(tensor(nullptr, DType::uint8, {0, 1, 2}, {2, 2, 1})), "a (0, 1, 2) uint8 tensor");
}

}  // namespace
}  // namespace ferry
