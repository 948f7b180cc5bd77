#include <limits>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "dlpack/describe.hpp"
#include "dlpack_support.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::float32_code;
using test::HandMade;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

alignas(16) std::byte memory[1024];

std::optional<Error> refusal(const DLTensor& tensor) {
  try {
    static_cast<void>(describe(tensor));
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

bool mentions(const std::string& text, const char* word) { return text.find(word) != std::string::npos; }

TEST(DLPackDType, GoesThereAndBackForEveryDType) {
  static_assert(test::dlpack_codes.size() == dtype_count);
  for (const auto& [dtype, code] : test::dlpack_codes) {
    EXPECT_TRUE(test::is_same(dtype_to_dlpack(dtype), code)) << info(dtype).name;
    EXPECT_EQ(dtype_from_dlpack(code), dtype) << info(dtype).name;
  }
}

TEST(DLPackDType, KnowsNoOtherCode) {
  std::size_t known = 0;
  for (unsigned code = 0; code < 256; ++code) {
    for (unsigned bits = 0; bits < 256; ++bits) {
      for (const unsigned lanes : {0U, 1U, 2U, 3U, 4U, 65535U}) {
        const DLDataType type{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits),
                              static_cast<std::uint16_t>(lanes)};
        known += dtype_from_dlpack(type).has_value() ? 1U : 0U;
      }
    }
  }
  EXPECT_EQ(known, dtype_count);
}

TEST(DLPackDType, RefusesUnknownCodesByTheirNumbers) {
  for (const DLDataType type :
       {DLDataType{kDLOpaqueHandle, 64, 1}, {kDLFloat, 32, 4}, {kDLFloat, 128, 1}, {255, 255, 65535}}) {
    HandMade made(memory, type, {2});
    const auto error = refusal(*made);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::dtype);
    EXPECT_EQ(error->given(), "a DLPack tensor of type code " + std::to_string(type.code) + ", " +
                                  std::to_string(type.bits) + " bits, " + std::to_string(type.lanes) + " lanes");
    EXPECT_TRUE(mentions(error->instead(), "float32"));
  }
}

TEST(DLPackDevice, IsTheHostsWhenTheProcessorMayReadIt) {
  for (int device = 0; device < 32; ++device) {
    EXPECT_EQ(is_host(static_cast<DLDeviceType>(device)), device == 1 || device == 3 || device == 11) << device;
  }
}

TEST(DLPackDevice, HasAName) {
  EXPECT_STREQ(device_name(kDLCPU), "cpu");
  EXPECT_STREQ(device_name(kDLCUDA), "cuda");
  EXPECT_STREQ(device_name(kDLCUDAHost), "cuda_host");
  EXPECT_STREQ(device_name(kDLROCMHost), "rocm_host");
  EXPECT_STREQ(device_name(kDLMetal), "metal");
  EXPECT_STREQ(device_name(static_cast<DLDeviceType>(5)), "unknown");
  EXPECT_STREQ(device_name(static_cast<DLDeviceType>(9999)), "unknown");
}

TEST(DLPackDescribe, TranslatesStridesToBytes) {
  HandMade made(memory, float32_code, {2, 3}, {-8, 2});
  const TensorRef ref = describe(*made);
  EXPECT_EQ(ref.data, memory);
  EXPECT_EQ(ref.dtype, DType::float32);
  EXPECT_EQ(ref.layout.itemsize, 4);
  EXPECT_EQ(ref.layout.shape, (Extents{2, 3}));
  EXPECT_EQ(ref.layout.strides, (Extents{-32, 8}));
  EXPECT_FALSE(ref.read_only || ref.conjugated || ref.negated || ref.byte_swapped);
}

TEST(DLPackDescribe, TakesNullStridesForCOrder) {
  HandMade made(memory, {kDLFloat, 64, 1}, {2, 3, 4});
  EXPECT_EQ(describe(*made).layout.strides, (Extents{96, 32, 8}));
  HandMade packed(memory, {kDLFloat4_e2m1fn, 4, 2}, {3, 5});
  EXPECT_EQ(describe(*packed).layout.strides, (Extents{5, 1}));
}

TEST(DLPackDescribe, AddsTheByteOffset) {
  HandMade made(memory, float32_code, {3});
  made->byte_offset = 20;
  EXPECT_EQ(describe(*made).data, memory + 20);
}

TEST(DLPackDescribe, ReplacesStridesThatMeanNothing) {
  HandMade single(memory, float32_code, {2, 1, 3, 1}, {3, smallest, 1, largest});
  EXPECT_EQ(describe(*single).layout.strides, (Extents{12, 12, 4, 4}));
  HandMade empty(memory, float32_code, {3, 0, 2}, {2, -999, 1});
  EXPECT_EQ(describe(*empty).layout.strides, (Extents{8, 8, 4}));
}

TEST(DLPackDescribe, TakesAScalar) {
  HandMade made(memory, {kDLBfloat, 16, 1}, {});
  const TensorRef ref = describe(*made);
  EXPECT_EQ(ref.layout.ndim(), 0);
  EXPECT_EQ(ref.dtype, DType::bfloat16);
  EXPECT_EQ(ref.data, memory);
}

TEST(DLPackDescribe, TakesEveryDType) {
  for (const auto& [dtype, code] : test::dlpack_codes) {
    HandMade made(memory, code, {2, 3});
    const TensorRef ref = describe(*made);
    EXPECT_EQ(ref.dtype, dtype);
    EXPECT_EQ(ref.layout.strides, (Extents{3 * info(dtype).itemsize, info(dtype).itemsize})) << info(dtype).name;
  }
}

TEST(DLPackDescribe, TakesNullForAnEmptyTensor) {
  HandMade made(nullptr, float32_code, {0, 3});
  EXPECT_EQ(describe(*made).data, nullptr);
  EXPECT_EQ(describe(*made).layout.shape, (Extents{0, 3}));
  made->byte_offset = 64;  // of no memory: nothing to add it to
  EXPECT_EQ(describe(*made).data, nullptr);
}

TEST(DLPackDescribe, RefusesNullForElements) {
  HandMade scalar(nullptr, float32_code, {});
  HandMade shifted(nullptr, float32_code, {2, 3});
  shifted->byte_offset = 16;
  EXPECT_EQ(refusal(*scalar)->given(), "a tensor of 1 elements without memory");
  const auto error = refusal(*shifted);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::layout);
  EXPECT_EQ(error->given(), "a tensor of 6 elements without memory");
  EXPECT_TRUE(mentions(error->why(), "null data pointer"));
  EXPECT_TRUE(mentions(error->instead(), "clone"));
}

TEST(DLPackDescribe, TakesAsManyAxesAsNumPyAndNoMore) {
  HandMade most(memory, float32_code, std::vector<std::int64_t>(64, 1));
  EXPECT_EQ(describe(*most).layout.ndim(), 64);
  HandMade more(memory, float32_code, std::vector<std::int64_t>(65, 1));
  const auto error = refusal(*more);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::layout);
  EXPECT_EQ(error->given(), "a DLPack tensor of 65 axes");
  EXPECT_TRUE(mentions(error->why(), "64 axes"));
  EXPECT_TRUE(mentions(error->instead(), "reshape"));
  more->ndim = -1;
  EXPECT_EQ(refusal(*more)->given(), "a DLPack tensor of -1 axes");
}

TEST(DLPackDescribe, RefusesNegativeExtents) {
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{-1}, {2, -3}, {0, -1}, {-2, -2}}) {
    HandMade made(memory, float32_code, shape);
    const auto error = refusal(*made);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->kind(), ErrorKind::layout);
    EXPECT_TRUE(mentions(error->why(), "shape"));
  }
}

TEST(DLPackDescribe, RefusesSizesThatDoNotFit) {
  constexpr std::int64_t two_to_31 = std::int64_t{1} << 31;
  constexpr std::int64_t two_to_61 = std::int64_t{1} << 61;
  const struct {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
  } cases[] = {
      {{largest, 3}, {0, 0}},                     // the number of elements
      {{two_to_31, two_to_31}, {0, 0}},           // its bytes: 2^62 elements of four
      {{two_to_61}, {1}},                         // 2^63 bytes
      {{3}, {two_to_61}},                         // a stride in bytes
      {{3}, {smallest}},                          // another
      {{3}, {two_to_61 / 2}},                     // the reach of one axis: 2 * 2^62
      {{2}, {-two_to_61}},                        // the same, down to the smallest number there is
      {{2, 2}, {two_to_61 / 2, two_to_61 / 2}},   // the reach of two axes
      {{2, 2}, {two_to_61 / 2, -two_to_61 / 2}},  // the same, in two directions
  };
  for (const auto& [shape, strides] : cases) {
    HandMade made(memory, float32_code, shape, strides);
    const auto error = refusal(*made);
    ASSERT_TRUE(error) << shape[0] << ' ' << strides[0];
    EXPECT_EQ(error->kind(), ErrorKind::layout);
    EXPECT_EQ(error->given(), "a DLPack tensor of " + std::to_string(shape.size()) + " axes");
    EXPECT_TRUE(mentions(error->instead(), "check the producer"));
  }
}

TEST(DLPackDescribe, TakesTheLargestSizesThatFit) {
  HandMade spread(memory, {kDLUInt, 8, 1}, {2, 2}, {largest / 2, -(largest / 2)});
  EXPECT_EQ(describe(*spread).layout.strides, (Extents{largest / 2, -(largest / 2)}));
  HandMade expanded(memory, {kDLUInt, 8, 1}, {largest}, {0});
  EXPECT_EQ(describe(*expanded).layout.shape, Extents{largest});
  HandMade empty(nullptr, float32_code, {0, largest, largest});
  EXPECT_EQ(describe(*empty).layout.shape, (Extents{0, largest, largest}));
}

}  // namespace
}  // namespace ferry
