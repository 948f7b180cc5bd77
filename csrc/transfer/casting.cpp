#include "transfer/casting.hpp"

namespace ferry {
namespace {

// Where a floating dtype's values lie: `precision` bits of significand, from 2^lowest (the smallest positive value) up
// to below 2^(highest + 1).
struct FloatRange {
  int precision;
  int lowest;
  int highest;
  bool has_infinity;
  bool has_nan;
  bool has_zero_and_sign = true;
};

FloatRange float_range(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
    case DType::complex32:
      return {11, -24, 15, true, true};
    case DType::float32:
    case DType::complex64:
      return {24, -149, 127, true, true};
    case DType::bfloat16:
      return {8, -133, 127, true, true};
    case DType::float8_e3m4:
      return {5, -6, 3, true, true};
    case DType::float8_e4m3:
      return {4, -9, 7, true, true};
    case DType::float8_e4m3b11fnuz:
      return {4, -13, 4, false, true};
    case DType::float8_e4m3fn:
      return {4, -9, 8, false, true};
    case DType::float8_e4m3fnuz:
      return {4, -10, 7, false, true};
    case DType::float8_e5m2:
      return {3, -16, 15, true, true};
    case DType::float8_e5m2fnuz:
      return {3, -17, 15, false, true};
    case DType::float8_e8m0fnu:
      return {1, -127, 127, false, true, false};
    case DType::float6_e2m3fn:
      return {4, -3, 2, false, false};
    case DType::float6_e3m2fn:
      return {3, -4, 4, false, false};
    case DType::float4_e2m1fn:
    case DType::float4_e2m1fn_x2:
      return {2, -1, 2, false, false};
    default:
      return {53, -1074, 1023, true, true};  // float64 and complex128
  }
}

bool is_integer(Kind kind) noexcept { return kind == Kind::unsigned_integer || kind == Kind::signed_integer; }

bool float_holds_float(const FloatRange& to, const FloatRange& from) noexcept {
  return to.precision >= from.precision && to.lowest <= from.lowest && to.highest >= from.highest &&
         (to.has_infinity || !from.has_infinity) && (to.has_nan || !from.has_nan) &&
         (to.has_zero_and_sign || !from.has_zero_and_sign);
}

bool float_holds_integer(const FloatRange& to, const DTypeInfo& from) noexcept {
  // The most negative signed value is a power of two, so a sign bit costs no precision.
  const int magnitude_bits = from.kind == Kind::signed_integer ? from.value_bits - 1 : from.value_bits;
  const int top_exponent = from.value_bits - 1;
  const bool by_convention = to.precision == 53;
  return to.has_zero_and_sign && to.highest >= top_exponent && (by_convention || to.precision >= magnitude_bits);
}

}  // namespace

bool holds_every_value(DType to, DType from) noexcept {
  if (to == from) return true;
  const DTypeInfo& t = info(to);
  const DTypeInfo& f = info(from);
  if (f.kind == Kind::boolean) {
    if (t.kind == Kind::floating) return float_range(to).has_zero_and_sign;
    return t.kind != Kind::signed_integer || t.value_bits > 1;  // int1 holds 0 and -1
  }
  switch (t.kind) {
    case Kind::boolean:
      return false;
    case Kind::unsigned_integer:
      return f.kind == Kind::unsigned_integer && t.value_bits >= f.value_bits;
    case Kind::signed_integer:
      return (f.kind == Kind::signed_integer && t.value_bits >= f.value_bits) ||
             (f.kind == Kind::unsigned_integer && t.value_bits > f.value_bits);
    case Kind::floating:
      return is_integer(f.kind) ? float_holds_integer(float_range(to), f)
                                : f.kind == Kind::floating && float_holds_float(float_range(to), float_range(from));
    case Kind::complex:
      return is_integer(f.kind) ? float_holds_integer(float_range(to), f)
                                : float_holds_float(float_range(to), float_range(from));
  }
  return false;
}

bool can_cast(DType from, DType to, Casting casting) noexcept {
  if (from == to) return true;
  switch (casting) {
    case Casting::no:
    case Casting::equiv:
      return false;
    case Casting::safe:
      return holds_every_value(to, from);
    case Casting::unsafe:
    case Casting::same_value:
      return true;
    case Casting::same_kind:
      break;
  }
  // The kinds are declared in NumPy's order: within a kind, or to a later one; nothing becomes a bool.
  return info(to).kind >= info(from).kind && info(to).kind != Kind::boolean;
}

}  // namespace ferry
