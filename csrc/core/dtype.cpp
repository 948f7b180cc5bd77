#include "core/dtype.hpp"

namespace ferry {

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    if (dtype_table[i].name == name) return static_cast<DType>(i);
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

}  // namespace ferry
