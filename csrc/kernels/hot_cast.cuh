// The casts that are worth kernels of their own, by bits. A program spends nearly all of its casts on these few pairs:
// they get vector accesses and no switch; all other pairs share one kernel that looks at both types for each element.
#pragma once

#include "kernels/convert.cuh"

namespace ferry::gpu {

struct BFloat16FromFloat32 {
  using To = std::uint16_t;
  using From = std::uint32_t;
  FERRY_DEVICE static To convert(From bits) {
    if ((bits & ~float_sign) > float_infinity) return static_cast<To>((bits >> 16U & 0x8000U) | 0x7FC0U);
    return static_cast<To>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
  }
};

struct Float16FromFloat32 {
  using To = std::uint16_t;
  using From = std::uint32_t;
  FERRY_DEVICE static To convert(From bits) {
    constexpr std::uint32_t rebias = (127U - 15U) << 23U;
    constexpr std::uint32_t smallest_normal = rebias + (1U << 23U);  // 2^-14
    constexpr std::uint32_t beyond = (127U + 16U) << 23U;            // 2^16
    constexpr std::uint32_t ruler = (127U - 1U) << 23U;              // its last bit is 2^-24
    const std::uint32_t sign = bits >> 16U & 0x8000U;
    const std::uint32_t magnitude = bits & ~float_sign;
    std::uint32_t code;
    if (magnitude > float_infinity) {
      code = 0x7E00U;
    } else if (magnitude >= beyond) {
      code = 0x7C00U;
    } else if (magnitude < smallest_normal) {
      code = bits_as<std::uint32_t>(bits_as<float>(magnitude) + bits_as<float>(ruler)) - ruler;
    } else {
      code = (magnitude + 0x0FFFU + ((magnitude >> 13U) & 1U) - rebias) >> 13U;
    }
    return static_cast<To>(sign | code);
  }
};

struct Float32FromBFloat16 {
  using To = std::uint32_t;
  using From = std::uint16_t;
  FERRY_DEVICE static To convert(From code) {
    const To bits = static_cast<To>(code) << 16U;
    return (bits & ~float_sign) > float_infinity ? (bits & float_sign) | float_nan : bits;
  }
};

struct Float32FromFloat16 {
  using To = std::uint32_t;
  using From = std::uint16_t;
  FERRY_DEVICE static To convert(From code) {
    constexpr std::uint32_t rebias = (127U - 15U) << 23U;
    constexpr std::uint32_t smallest_normal = rebias + (1U << 23U);
    const std::uint32_t sign = static_cast<To>(code & 0x8000U) << 16U;
    const std::uint32_t magnitude = code & 0x7FFFU;
    std::uint32_t bits = (magnitude << 13U) + rebias;
    if (magnitude > 0x7C00U) {
      bits = float_nan;
    } else if (magnitude == 0x7C00U) {
      bits = float_infinity;
    } else if (magnitude < 0x0400U) {
      const auto in_place = bits_as<float>((magnitude << 13U) + smallest_normal);
      bits = bits_as<std::uint32_t>(in_place - bits_as<float>(smallest_normal));
    }
    return sign | bits;
  }
};

struct Float32FromFloat64 {
  using To = std::uint32_t;
  using From = std::uint64_t;
  FERRY_DEVICE static To convert(From bits) { return narrow_double(bits_as<double>(bits)); }
};

struct Float32FromUInt8 {
  using To = std::uint32_t;
  using From = std::uint8_t;
  FERRY_DEVICE static To convert(From value) {
    return bits_as<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(value)));
  }
};

}  // namespace ferry::gpu
