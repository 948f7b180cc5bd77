#include "core/dtype.hpp"

#include <array>

namespace ferry {
namespace {

constexpr std::array<DTypeInfo, dtype_count> table{{
#define X(name, kind, value_bits, itemsize, per_item, code, bits, lanes, native)            \
  {std::string_view(#name) == "bool_" ? std::string_view("bool") : std::string_view(#name), \
   Kind::kind,                                                                              \
   value_bits,                                                                              \
   itemsize,                                                                                \
   per_item,                                                                                \
   code,                                                                                    \
   bits,                                                                                    \
   lanes,                                                                                   \
   native},
    FERRY_DTYPES(X)
#undef X
}};

}  // namespace

const DTypeInfo& info(DType dtype) noexcept { return table[static_cast<std::size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::size_t alignment(DType dtype) noexcept {
  const DTypeInfo& d = info(dtype);
  return d.kind == Kind::complex ? d.itemsize / 2U : d.itemsize;
}

std::optional<DType> bits_dtype(DType dtype) noexcept {
  switch (info(dtype).itemsize) {
    case 1:
      return DType::uint8;
    case 2:
      return DType::uint16;
    case 4:
      return DType::uint32;
    case 8:
      return DType::uint64;
    default:
      return std::nullopt;
  }
}

DType native_dtype(DType dtype) noexcept {
  const DTypeInfo& d = info(dtype);
  if (d.numpy_native) return dtype;
  switch (d.kind) {
    case Kind::complex:
      return DType::complex64;
    case Kind::signed_integer:
      return DType::int8;
    case Kind::unsigned_integer:
      return DType::uint8;
    default:
      break;
  }
  // bfloat16 and the exponent-only float8 reach beyond float16's range; every other small float fits inside it.
  return dtype == DType::bfloat16 || dtype == DType::float8_e8m0fnu ? DType::float32 : DType::float16;
}

DType array_dtype(DType dtype) noexcept {
  if (dtype == DType::float4_e2m1fn_x2) return DType::float4_e2m1fn;
  if (dtype == DType::complex32) return DType::complex64;
  return dtype;
}

}  // namespace ferry
