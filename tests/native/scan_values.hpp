// What a plain loop over single values says of a tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "host/float_format.hpp"
#include "host/scan.hpp"
#include "support.hpp"

namespace ferry::test {

// Exact: wide enough for 64-bit integers.
using Value = long double;

template <class T>
Value read(const std::byte* at, bool swapped) {
  std::array<std::byte, sizeof(T)> bytes;
  std::memcpy(bytes.data(), at, sizeof(T));
  if (swapped) std::reverse(bytes.begin(), bytes.end());
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<Value>(value);
}

inline Value integer_of(const DTypeInfo& type, std::uint64_t bits) {
  bits &= ~std::uint64_t{0} >> (64 - type.value_bits);
  const bool negative = type.kind == Kind::signed_integer && (bits >> (type.value_bits - 1)) != 0U;
  return static_cast<Value>(bits) - (negative ? std::ldexp(Value{1}, type.value_bits) : Value{0});
}

// One real value, or one part of a complex one; of packed elements the one that stands in the bits `shift` and above.
inline Value value_at(const TensorRef& ref, const std::byte* at, int part = 0, unsigned shift = 0) {
  const DTypeInfo& type = info(ref.dtype);
  const int nbytes = type.kind == Kind::complex ? type.itemsize / 2 : type.itemsize;
  at += part * nbytes;
  const bool swapped = ref.byte_swapped;
  const bool is_float = type.kind == Kind::floating || type.kind == Kind::complex;
  if (is_float && nbytes == 8) return read<double>(at, swapped);
  if (is_float && nbytes == 4) return read<float>(at, swapped);
  const auto bits = static_cast<std::uint64_t>(nbytes == 1   ? read<std::uint8_t>(at, swapped)
                                               : nbytes == 2 ? read<std::uint16_t>(at, swapped)
                                               : nbytes == 4 ? read<std::uint32_t>(at, swapped)
                                                             : read<std::uint64_t>(at, swapped));
  if (is_float) return decode(float_format(ref.dtype), static_cast<std::uint32_t>(bits >> shift));
  if (type.kind == Kind::boolean) return bits != 0 ? 1 : 0;
  return integer_of(type, bits);
}

// Calls is_wanted(address of the item, shift) for each element, in C order.
template <class IsWanted>
ScanReport plain_scan(const TensorRef& ref, IsWanted&& is_wanted) {
  const std::int64_t per_item = info(ref.dtype).elements_per_item;
  ScanReport report;
  for (std::int64_t flat = 0; flat < element_count(ref.layout.shape).value(); ++flat) {
    for (std::int64_t k = 0; k < per_item; ++k) {
      if (!is_wanted(ref.data + offset_of(ref.layout, flat), static_cast<unsigned>(4 * k))) continue;
      if (report.count++ == 0) report.first = flat * per_item + k;
    }
  }
  return report;
}

inline ScanReport plain_nonfinite(const TensorRef& ref) {
  const Kind kind = info(ref.dtype).kind;
  if (kind != Kind::floating && kind != Kind::complex) return {};
  return plain_scan(ref, [&](const std::byte* at, unsigned shift) {
    const bool imaginary = kind == Kind::complex && !std::isfinite(value_at(ref, at, 1));
    return imaginary || !std::isfinite(value_at(ref, at, 0, shift));
  });
}

inline ScanReport plain_outside(const TensorRef& ref, double low, double high) {
  return plain_scan(ref, [&](const std::byte* at, unsigned shift) {
    const Value stored = value_at(ref, at, 0, shift);
    const Value value = ref.negated ? -stored : stored;
    return !(static_cast<Value>(low) <= value && value <= static_cast<Value>(high));
  });
}

inline ::testing::AssertionResult agree(const ScanReport& found, const ScanReport& expected) {
  if (found.count == expected.count && found.first == expected.first) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "found " << found.count << " from " << found.first << " on, expected "
                                       << expected.count << " from " << expected.first << " on";
}

}  // namespace ferry::test
