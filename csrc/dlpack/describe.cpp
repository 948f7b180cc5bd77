#include "dlpack/describe.hpp"

#include <array>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/checked_math.hpp"
#include "core/error.hpp"

namespace ferry {

namespace {

// By type code and bits, for one lane: constant time, since every conversion asks. -1 for what is not in the table.
constexpr int code_count = 18;
constexpr int bits_count = 129;
using Lookup = std::array<std::array<std::int8_t, bits_count>, code_count>;

constexpr Lookup single_lane = [] {
  Lookup lookup{};
  for (auto& row : lookup) row.fill(-1);
#define X(name, kind, value_bits, itemsize, per_item, code, bits, lanes, native) \
  if constexpr (lanes == 1) lookup[code][bits] = static_cast<std::int8_t>(DType::name);
  FERRY_DTYPES(X)
#undef X
  return lookup;
}();

// So that nothing that is computed of a layout later, such as its span, its bytes or an absolute stride, can overflow.
bool fits_in_64_bits(const Layout& layout, std::int64_t count) noexcept {
  if (count == 0) return true;
  if (!checked_mul(count, layout.itemsize)) return false;
  std::int64_t total = layout.itemsize;
  for (int i = 0; i < layout.ndim(); ++i) {
    const auto reach = checked_mul(layout.shape[i] - 1, layout.strides[i]);
    if (!reach || *reach == std::numeric_limits<std::int64_t>::min()) return false;
    const auto sum = checked_add(total, std::abs(*reach));
    if (!sum) return false;
    total = *sum;
  }
  return true;
}

}  // namespace

std::optional<DType> dtype_from_dlpack(DLDataType type) noexcept {
  if (type.lanes == 1 && type.code < code_count && type.bits < bits_count) {
    const std::int8_t found = single_lane[type.code][type.bits];
    if (found >= 0) return static_cast<DType>(found);
    return std::nullopt;
  }
  const DLDataType packed = dtype_to_dlpack(DType::float4_e2m1fn_x2);
  if (type.code == packed.code && type.bits == packed.bits && type.lanes == packed.lanes) {
    return DType::float4_e2m1fn_x2;
  }
  return std::nullopt;
}

DLDataType dtype_to_dlpack(DType dtype) noexcept {
  const DTypeInfo& d = info(dtype);
  return {d.dlpack_code, d.dlpack_bits, d.dlpack_lanes};
}

bool is_host(DLDeviceType device) noexcept {
  return device == kDLCPU || device == kDLCUDAHost || device == kDLROCMHost;
}

const char* device_name(DLDeviceType device) noexcept {
  switch (device) {
    case kDLCPU:
      return "cpu";
    case kDLCUDA:
      return "cuda";
    case kDLCUDAHost:
      return "cuda_host";
    case kDLOpenCL:
      return "opencl";
    case kDLVulkan:
      return "vulkan";
    case kDLMetal:
      return "metal";
    case kDLVPI:
      return "vpi";
    case kDLROCM:
      return "rocm";
    case kDLROCMHost:
      return "rocm_host";
    case kDLExtDev:
      return "ext_dev";
    case kDLCUDAManaged:
      return "cuda_managed";
    case kDLOneAPI:
      return "oneapi";
    case kDLWebGPU:
      return "webgpu";
    case kDLHexagon:
      return "hexagon";
    default:
      return "unknown";
  }
}

TensorRef describe(const DLTensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > max_ndim) {
    throw Error(ErrorKind::layout, "a DLPack tensor of " + std::to_string(tensor.ndim) + " axes",
                "NumPy arrays have at most 64 axes", "reshape it to fewer axes first");
  }
  const auto dtype = dtype_from_dlpack(tensor.dtype);
  if (!dtype) {
    throw Error(ErrorKind::dtype,
                "a DLPack tensor of type code " + std::to_string(tensor.dtype.code) + ", " +
                    std::to_string(tensor.dtype.bits) + " bits, " + std::to_string(tensor.dtype.lanes) + " lanes",
                "no NumPy or ml_dtypes dtype is laid out like that",
                "convert it in the producing library to a dtype that both have, such as float32");
  }
  const DTypeInfo& type = info(*dtype);
  TensorRef ref;
  ref.dtype = *dtype;
  ref.layout.itemsize = type.itemsize;
  ref.layout.shape.resize(tensor.ndim);
  ref.layout.strides.resize(tensor.ndim);
  std::int64_t packed = type.itemsize;
  for (int i = tensor.ndim - 1; i >= 0; --i) {
    const std::int64_t extent = tensor.shape[i];
    const bool is_packed = extent <= 1 || tensor.strides == nullptr;
    const auto stride = is_packed ? packed : checked_mul(tensor.strides[i], std::int64_t{type.itemsize});
    if (extent < 0 || !stride) {
      throw Error(ErrorKind::layout, "a DLPack tensor of " + std::to_string(tensor.ndim) + " axes",
                  "its shape or strides are those of no memory", "check the producer");
    }
    ref.layout.shape[i] = extent;
    ref.layout.strides[i] = *stride;
    packed = checked_mul(packed, extent > 1 ? extent : 1).value_or(0);
  }
  const auto count = element_count(ref.layout.shape);
  if (!count || !fits_in_64_bits(ref.layout, *count)) {
    throw Error(ErrorKind::layout, "a DLPack tensor of " + std::to_string(tensor.ndim) + " axes",
                "its number of elements, bytes or offsets does not fit in 64 bits",
                "take a part of it, such as x[:1000], or check the producer: no memory is that large");
  }
  if (*count > 0 && tensor.data == nullptr) {
    throw Error(ErrorKind::layout, "a tensor of " + std::to_string(*count) + " elements without memory",
                "the producer gave a null data pointer (a fake, functional, zero or emptied tensor)",
                "materialise it first, for example x.clone()");
  }
  if (tensor.data != nullptr) ref.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  return ref;
}

}  // namespace ferry
