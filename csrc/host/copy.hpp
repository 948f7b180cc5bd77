// Copies values between strided tensors in host memory, of any two dtypes.
//
// What a cast does with a value that the destination cannot hold:
//
//   to \ from     integer or bool      real floating                      complex
//   bool          value != 0           value != 0, so NaN is true         either part != 0
//   integer       modulo 2^bits        toward zero, saturating, NaN is 0  as its real part
//   floating      one rounding         one rounding, see below            as its real part
//   complex       real part as above, imaginary part 0                    each part as floating
//
// A rounding is to nearest, ties to even, and there is exactly one, from 64-bit integers and float64 too. What lies
// beyond the largest finite number, rounded, becomes
//   infinity           in float16, float32, bfloat16, float8_e3m4, float8_e4m3, float8_e5m2;
//   NaN                in float8_e4m3fn, the fnuz types and float8_e8m0fnu;
//   the largest number in the float6 and float4 types.
// float8_e8m0fnu has neither zero nor sign: those become NaN, and positive numbers too small for it its smallest. NaN
// becomes a NaN of the same sign where there is one, and a zero in the float6 and float4 types. These are the rules of
// ml_dtypes, but ml_dtypes itself rounds float64 and integers twice, through float32. The same dtype on both sides
// moves bits: NaN payloads stay, but a bool becomes 0 or 1.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor_ref.hpp"

namespace ferry {

// Shapes are equal once packed elements are unpacked along the last axis, else Error(layout). Conjugate, negative and
// byte-order marks of either side are honoured. Nothing is checked about overlap or about `read_only`.
void copy(const TensorRef& destination, const TensorRef& source);

struct Mismatch {
  std::int64_t index;  // C-order flat index of the first element whose value changed
};

// Copies, and tells whether every value survived. NaN survives as NaN, -0.0 as 0; nothing survives being rounded,
// wrapped, saturated or stripped of an imaginary part. After a mismatch the destination's contents are unspecified.
[[nodiscard]] std::optional<Mismatch> copy_same_value(const TensorRef& destination, const TensorRef& source);

}  // namespace ferry
