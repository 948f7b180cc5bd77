// One element of any type to any other, with the results that host/copy.hpp defines.
#pragma once

#include "kernels/small_float.cuh"

namespace ferry::gpu {

inline constexpr std::uint32_t float_sign = 0x8000'0000U;
inline constexpr std::uint32_t float_infinity = 0x7F80'0000U;
inline constexpr std::uint32_t float_nan = 0x7FC0'0000U;

// Devices make every NaN the same one when they convert between floats; processors keep sign and payload, so we do.
FERRY_DEVICE double widen_float(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & ~float_sign;
  if (magnitude <= float_infinity) return static_cast<double>(bits_as<float>(bits));
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & float_sign) << 32U;
  return bits_as<double>(sign | double_nan | static_cast<std::uint64_t>(magnitude & 0x007F'FFFFU) << 29U);
}

FERRY_DEVICE std::uint32_t narrow_double(double value) {
  const auto bits = bits_as<std::uint64_t>(value);
  if ((bits & ~double_sign) <= double_infinity) return bits_as<std::uint32_t>(static_cast<float>(value));
  const auto sign = static_cast<std::uint32_t>(bits >> 32U) & float_sign;
  return sign | float_nan | (static_cast<std::uint32_t>(bits >> 29U) & 0x003F'FFFFU);
}

enum class Carrier : std::uint8_t { int64, uint64, float64, complex128 };

// Holds every value of every type exactly.
struct Value {
  std::uint64_t integer;  // two's complement for int64
  double real;
  double imaginary;
  Carrier carrier;
};

FERRY_DEVICE Value of_signed(std::int64_t value) {
  return {static_cast<std::uint64_t>(value), 0.0, 0.0, Carrier::int64};
}
FERRY_DEVICE Value of_unsigned(std::uint64_t value) { return {value, 0.0, 0.0, Carrier::uint64}; }
FERRY_DEVICE Value of_real(double value) { return {0, value, 0.0, Carrier::float64}; }
FERRY_DEVICE Value of_complex(double real, double imaginary) { return {0, real, imaginary, Carrier::complex128}; }

// Of integers; float types have their own ways.
FERRY_DEVICE std::uint32_t value_bits(ElementType type) {
  switch (type) {
    case ElementType::int1:
    case ElementType::uint1:
      return 1;
    case ElementType::int2:
    case ElementType::uint2:
      return 2;
    case ElementType::int4:
    case ElementType::uint4:
      return 4;
    default:
      return 8 * itemsize(type);
  }
}

FERRY_DEVICE bool is_signed_integer(ElementType type) {
  switch (type) {
    case ElementType::int8:
    case ElementType::int16:
    case ElementType::int32:
    case ElementType::int64:
    case ElementType::int1:
    case ElementType::int2:
    case ElementType::int4:
      return true;
    default:
      return false;
  }
}

FERRY_DEVICE bool is_unsigned_integer(ElementType type) {
  switch (type) {
    case ElementType::uint8:
    case ElementType::uint16:
    case ElementType::uint32:
    case ElementType::uint64:
    case ElementType::uint1:
    case ElementType::uint2:
    case ElementType::uint4:
      return true;
    default:
      return false;
  }
}

FERRY_DEVICE std::uint64_t load_bits(Address at, std::uint32_t nbytes) {
  switch (nbytes) {
    case 1:
      return load<std::uint8_t>(at);
    case 2:
      return load<std::uint16_t>(at);
    case 4:
      return load<std::uint32_t>(at);
    default:
      return load<std::uint64_t>(at);
  }
}

FERRY_DEVICE void store_bits(Address at, std::uint64_t bits, std::uint32_t nbytes) {
  switch (nbytes) {
    case 1:
      return store(at, static_cast<std::uint8_t>(bits));
    case 2:
      return store(at, static_cast<std::uint16_t>(bits));
    case 4:
      return store(at, static_cast<std::uint32_t>(bits));
    default:
      return store(at, bits);
  }
}

// A float of `nbytes` at this place; those of 1 and 2 bytes have this format.
FERRY_DEVICE double load_float(Address at, std::uint32_t nbytes, Format format) {
  const std::uint64_t bits = load_bits(at, nbytes);
  if (nbytes == 8) return bits_as<double>(bits);
  if (nbytes == 4) return widen_float(static_cast<std::uint32_t>(bits));
  return decode(format, static_cast<std::uint32_t>(bits));
}

FERRY_DEVICE void store_float(Address at, std::uint32_t nbytes, Format format, double value) {
  std::uint64_t bits;
  if (nbytes == 8) {
    bits = bits_as<std::uint64_t>(value);
  } else if (nbytes == 4) {
    bits = narrow_double(value);
  } else {
    bits = encode(format, value);
  }
  store_bits(at, bits, nbytes);
}

FERRY_DEVICE bool is_complex(ElementType type) {
  return type == ElementType::complex32 || type == ElementType::complex64 || type == ElementType::complex128;
}

FERRY_DEVICE Value load_value(ElementType type, Address at) {
  const std::uint32_t nbytes = itemsize(type);
  if (type == ElementType::bool_) return of_unsigned(load<std::uint8_t>(at) != 0 ? 1U : 0U);
  if (is_signed_integer(type) || is_unsigned_integer(type)) {
    const std::uint32_t unused = 64U - value_bits(type);
    const std::uint64_t bits = load_bits(at, nbytes) << unused;
    if (is_unsigned_integer(type)) return of_unsigned(bits >> unused);
    return of_signed(static_cast<std::int64_t>(bits) >> unused);
  }
  const Format format = format_of(type);
  if (!is_complex(type)) return of_real(load_float(at, nbytes, format));
  const std::uint32_t part = nbytes / 2;
  const double real = load_float(at, part, format);
  return of_complex(real, load_float(at + part, part, format));
}

// Exact for what double holds; of other integers, a number that any rounding to 42 bits or fewer takes for this one.
FERRY_DEVICE double to_sticky_double(const Value& value) {
  constexpr std::uint64_t lost = (std::uint64_t{1} << 11U) - 1U;
  constexpr std::uint64_t edge = std::uint64_t{1} << 53U;
  const std::uint64_t bits = value.integer;
  const std::uint64_t sticky = (bits & ~lost) | ((bits & lost) != 0U ? lost + 1U : 0U);
  if (value.carrier == Carrier::int64) {
    return static_cast<double>(static_cast<std::int64_t>(bits + edge < 2U * edge ? bits : sticky));
  }
  return static_cast<double>(bits < edge ? bits : sticky);
}

// `narrow`: it will be rounded once more.
FERRY_DEVICE double to_double(const Value& value, bool narrow) {
  if (value.carrier == Carrier::float64 || value.carrier == Carrier::complex128) return value.real;
  if (narrow) return to_sticky_double(value);
  if (value.carrier == Carrier::int64) return static_cast<double>(static_cast<std::int64_t>(value.integer));
  return static_cast<double>(value.integer);
}

// Toward zero, saturating, NaN is 0.
FERRY_DEVICE std::uint64_t to_integer(double value, std::uint32_t bits, bool is_signed) {
  const std::uint32_t digits = is_signed ? bits - 1U : bits;
  const double beyond = power_of_two(static_cast<std::int32_t>(digits));
  const std::uint64_t high = digits == 0U ? 0U : ~std::uint64_t{0} >> (64U - digits);
  if (value >= beyond) return high;
  if (is_signed) {
    if (value <= -beyond) return 0U - high - 1U;
    return value == value ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : 0U;
  }
  return value > 0.0 ? static_cast<std::uint64_t>(value) : 0U;
}

FERRY_DEVICE bool is_other_than_zero(const Value& value) {
  if (value.carrier == Carrier::int64 || value.carrier == Carrier::uint64) return value.integer != 0U;
  return value.real != 0.0 || value.imaginary != 0.0;
}

FERRY_DEVICE void store_value(ElementType type, Address at, const Value& value) {
  const std::uint32_t nbytes = itemsize(type);
  if (type == ElementType::bool_) {
    store(at, static_cast<std::uint8_t>(is_other_than_zero(value) ? 1 : 0));
    return;
  }
  const bool is_signed = is_signed_integer(type);
  if (is_signed || is_unsigned_integer(type)) {
    const std::uint32_t bits = value_bits(type);
    const bool from_integer = value.carrier == Carrier::int64 || value.carrier == Carrier::uint64;
    const std::uint64_t integer = from_integer ? value.integer : to_integer(value.real, bits, is_signed);
    store_bits(at, integer & (~std::uint64_t{0} >> (64U - bits)), nbytes);
    return;
  }
  const Format format = format_of(type);
  const std::uint32_t part = is_complex(type) ? nbytes / 2 : nbytes;
  store_float(at, part, format, to_double(value, part < 8));
  if (is_complex(type)) {
    store_float(at + part, part, format, value.carrier == Carrier::complex128 ? value.imaginary : 0.0);
  }
}

// Equal types move bits, except that a bool becomes 0 or 1; callers see to that by not casting.
FERRY_DEVICE void convert_element(Cast cast, Address to, Address from) {
  store_value(static_cast<ElementType>(cast.to), to, load_value(static_cast<ElementType>(cast.from), from));
}

}  // namespace ferry::gpu
