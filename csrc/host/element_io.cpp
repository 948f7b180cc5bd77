#include "host/element_io.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "host/float_format.hpp"

namespace ferry {
namespace {

template <class T, bool swapped>
T get(const std::byte* at) noexcept {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), at, sizeof(T));
  if constexpr (swapped) std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

template <class T, bool swapped>
void put(std::byte* at, T value) noexcept {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  if constexpr (swapped) std::reverse(bytes.begin(), bytes.end());
  std::memcpy(at, bytes.data(), sizeof(T));
}

template <class Value>
constexpr Carrier carrier_for() noexcept {
  if constexpr (std::is_same_v<Value, std::int64_t>) return Carrier::int64;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return Carrier::uint64;
  if constexpr (std::is_same_v<Value, double>) return Carrier::float64;
  return Carrier::complex128;
}

// One element type each: `Value` is its carrier; load and store touch one item.

struct Boolean {
  using Value = std::uint64_t;
  static Value load(const std::byte* at) noexcept { return *at != std::byte{0} ? 1U : 0U; }
  static void store(std::byte* at, Value value) noexcept { *at = value != 0U ? std::byte{1} : std::byte{0}; }
};

template <class T, bool swapped>
struct Integer {
  using Value = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
  static Value load(const std::byte* at) noexcept { return get<T, swapped>(at); }
  static void store(std::byte* at, Value value) noexcept { put<T, swapped>(at, static_cast<T>(value)); }
};

// One byte per element; as in ml_dtypes only the low bits count and the others are written as zero.
template <class Carrier, int bits>
struct SmallInteger {
  using Value = Carrier;
  static constexpr std::uint64_t mask = (1U << bits) - 1U;
  static Value load(const std::byte* at) noexcept {
    const std::uint64_t low = static_cast<std::uint64_t>(*at) & mask;
    return static_cast<Value>(low << (64 - bits)) >> (64 - bits);
  }
  static void store(std::byte* at, Value value) noexcept {
    *at = static_cast<std::byte>(static_cast<std::uint64_t>(value) & mask);
  }
};

template <class T, bool swapped>
struct NativeFloat {
  using Value = double;
  static Value load(const std::byte* at) noexcept { return get<T, swapped>(at); }
  static void store(std::byte* at, Value value) noexcept { put<T, swapped>(at, static_cast<T>(value)); }
};

template <DType dtype, bool swapped>
struct SmallFloat {
  using Value = double;
  using Bits = std::conditional_t<(float_format(dtype).total_bits() > 8), std::uint16_t, std::uint8_t>;
  static Value load(const std::byte* at) noexcept { return decode(float_format(dtype), get<Bits, swapped>(at)); }
  static void store(std::byte* at, Value value) noexcept {
    put<Bits, swapped>(at, static_cast<Bits>(encode(float_format(dtype), value)));
  }
};

template <class Part, std::size_t part_nbytes>
struct Complex {
  using Value = std::complex<double>;
  static Value load(const std::byte* at) noexcept { return {Part::load(at), Part::load(at + part_nbytes)}; }
  static void store(std::byte* at, Value value) noexcept {
    Part::store(at, value.real());
    Part::store(at + part_nbytes, value.imag());
  }
};

template <class Element>
void load_row(const std::byte* row, std::int64_t step, std::int64_t count, Block& block) {
  auto* values = block.as<typename Element::Value>();
  for (std::int64_t i = 0; i < count; ++i, row += step) values[i] = Element::load(row);
}

template <class Element>
void store_row(std::byte* row, std::int64_t step, std::int64_t count, const Block& block) {
  const auto* values = block.as<typename Element::Value>();
  for (std::int64_t i = 0; i < count; ++i, row += step) Element::store(row, values[i]);
}

constexpr FloatFormat packed_format = float_format(DType::float4_e2m1fn_x2);

void load_packed(const std::byte* row, std::int64_t step, std::int64_t count, Block& block) {
  auto* values = block.as<double>();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto pair = static_cast<std::uint32_t>(row[i / 2 * step]);
    values[i] = decode(packed_format, i % 2 == 0 ? pair : pair >> 4U);
  }
}

void store_packed(std::byte* row, std::int64_t step, std::int64_t count, const Block& block) {
  const auto* values = block.as<double>();
  for (std::int64_t i = 0; i < count; i += 2, row += step) {
    const std::uint32_t low = encode(packed_format, values[i]);
    const std::uint32_t high = encode(packed_format, values[i + 1]);
    *row = static_cast<std::byte>(low | (high << 4U));
  }
}

template <class Element>
ElementIO io() noexcept {
  return {carrier_for<typename Element::Value>(), load_row<Element>, store_row<Element>};
}

template <bool swapped>
ElementIO element_io_for(DType dtype) noexcept {
  switch (dtype) {
    case DType::bool_:
      return io<Boolean>();
    case DType::uint8:
      return io<Integer<std::uint8_t, swapped>>();
    case DType::uint16:
      return io<Integer<std::uint16_t, swapped>>();
    case DType::uint32:
      return io<Integer<std::uint32_t, swapped>>();
    case DType::uint64:
      return io<Integer<std::uint64_t, swapped>>();
    case DType::int8:
      return io<Integer<std::int8_t, swapped>>();
    case DType::int16:
      return io<Integer<std::int16_t, swapped>>();
    case DType::int32:
      return io<Integer<std::int32_t, swapped>>();
    case DType::int64:
      return io<Integer<std::int64_t, swapped>>();
    case DType::float16:
      return io<SmallFloat<DType::float16, swapped>>();
    case DType::float32:
      return io<NativeFloat<float, swapped>>();
    case DType::float64:
      return io<NativeFloat<double, swapped>>();
    case DType::complex64:
      return io<Complex<NativeFloat<float, swapped>, sizeof(float)>>();
    case DType::complex128:
      return io<Complex<NativeFloat<double, swapped>, sizeof(double)>>();
    case DType::bfloat16:
      return io<SmallFloat<DType::bfloat16, swapped>>();
    case DType::float8_e3m4:
      return io<SmallFloat<DType::float8_e3m4, false>>();
    case DType::float8_e4m3:
      return io<SmallFloat<DType::float8_e4m3, false>>();
    case DType::float8_e4m3b11fnuz:
      return io<SmallFloat<DType::float8_e4m3b11fnuz, false>>();
    case DType::float8_e4m3fn:
      return io<SmallFloat<DType::float8_e4m3fn, false>>();
    case DType::float8_e4m3fnuz:
      return io<SmallFloat<DType::float8_e4m3fnuz, false>>();
    case DType::float8_e5m2:
      return io<SmallFloat<DType::float8_e5m2, false>>();
    case DType::float8_e5m2fnuz:
      return io<SmallFloat<DType::float8_e5m2fnuz, false>>();
    case DType::float8_e8m0fnu:
      return io<SmallFloat<DType::float8_e8m0fnu, false>>();
    case DType::float6_e2m3fn:
      return io<SmallFloat<DType::float6_e2m3fn, false>>();
    case DType::float6_e3m2fn:
      return io<SmallFloat<DType::float6_e3m2fn, false>>();
    case DType::float4_e2m1fn:
      return io<SmallFloat<DType::float4_e2m1fn, false>>();
    case DType::float4_e2m1fn_x2:
      return {Carrier::float64, load_packed, store_packed};
    case DType::complex32:
      return io<Complex<SmallFloat<DType::float16, swapped>, sizeof(std::uint16_t)>>();
    case DType::int1:
      return io<SmallInteger<std::int64_t, 1>>();
    case DType::int2:
      return io<SmallInteger<std::int64_t, 2>>();
    case DType::int4:
      return io<SmallInteger<std::int64_t, 4>>();
    case DType::uint1:
      return io<SmallInteger<std::uint64_t, 1>>();
    case DType::uint2:
      return io<SmallInteger<std::uint64_t, 2>>();
    case DType::uint4:
      return io<SmallInteger<std::uint64_t, 4>>();
  }
  return {};
}

}  // namespace

ElementIO element_io(DType dtype, bool byte_swapped) noexcept {
  return byte_swapped ? element_io_for<true>(dtype) : element_io_for<false>(dtype);
}

}  // namespace ferry
