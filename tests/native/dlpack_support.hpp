// Hand-made DLPack tensors, and the codes of every dtype written with the header's own constants.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "dlpack/abi.hpp"

namespace ferry::test {

struct DLPackCode {
  DType dtype;
  DLDataType code;
};

constexpr std::array<DLPackCode, 34> dlpack_codes{{
    {DType::bool_, {kDLBool, 8, 1}},
    {DType::uint8, {kDLUInt, 8, 1}},
    {DType::uint16, {kDLUInt, 16, 1}},
    {DType::uint32, {kDLUInt, 32, 1}},
    {DType::uint64, {kDLUInt, 64, 1}},
    {DType::int8, {kDLInt, 8, 1}},
    {DType::int16, {kDLInt, 16, 1}},
    {DType::int32, {kDLInt, 32, 1}},
    {DType::int64, {kDLInt, 64, 1}},
    {DType::float16, {kDLFloat, 16, 1}},
    {DType::float32, {kDLFloat, 32, 1}},
    {DType::float64, {kDLFloat, 64, 1}},
    {DType::complex64, {kDLComplex, 64, 1}},
    {DType::complex128, {kDLComplex, 128, 1}},
    {DType::bfloat16, {kDLBfloat, 16, 1}},
    {DType::float8_e3m4, {kDLFloat8_e3m4, 8, 1}},
    {DType::float8_e4m3, {kDLFloat8_e4m3, 8, 1}},
    {DType::float8_e4m3b11fnuz, {kDLFloat8_e4m3b11fnuz, 8, 1}},
    {DType::float8_e4m3fn, {kDLFloat8_e4m3fn, 8, 1}},
    {DType::float8_e4m3fnuz, {kDLFloat8_e4m3fnuz, 8, 1}},
    {DType::float8_e5m2, {kDLFloat8_e5m2, 8, 1}},
    {DType::float8_e5m2fnuz, {kDLFloat8_e5m2fnuz, 8, 1}},
    {DType::float8_e8m0fnu, {kDLFloat8_e8m0fnu, 8, 1}},
    {DType::float6_e2m3fn, {kDLFloat6_e2m3fn, 6, 1}},
    {DType::float6_e3m2fn, {kDLFloat6_e3m2fn, 6, 1}},
    {DType::float4_e2m1fn, {kDLFloat4_e2m1fn, 4, 1}},
    {DType::float4_e2m1fn_x2, {kDLFloat4_e2m1fn, 4, 2}},
    {DType::complex32, {kDLComplex, 32, 1}},
    {DType::int1, {kDLInt, 1, 1}},
    {DType::int2, {kDLInt, 2, 1}},
    {DType::int4, {kDLInt, 4, 1}},
    {DType::uint1, {kDLUInt, 1, 1}},
    {DType::uint2, {kDLUInt, 2, 1}},
    {DType::uint4, {kDLUInt, 4, 1}},
}};

constexpr DLDataType float32_code{kDLFloat, 32, 1};

inline bool is_same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

// Owns the shape and strides that its DLTensor points to.
class HandMade {
 public:
  HandMade(void* data, DLDataType type, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides)
      : shape_(std::move(shape)), strides_(std::move(strides)) {
    tensor_.data = data;
    tensor_.device = {kDLCPU, 0};
    tensor_.ndim = static_cast<int>(shape_.size());
    tensor_.dtype = type;
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
  }
  // Without strides: packed in C order.
  HandMade(void* data, DLDataType type, std::vector<std::int64_t> shape) : HandMade(data, type, std::move(shape), {}) {
    tensor_.strides = nullptr;
  }
  HandMade(const HandMade&) = delete;
  HandMade& operator=(const HandMade&) = delete;

  DLTensor& operator*() { return tensor_; }
  DLTensor* operator->() { return &tensor_; }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;
  DLTensor tensor_{};
};

}  // namespace ferry::test
