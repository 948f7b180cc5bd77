#include "bind/metric_number.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include "bind/torch_source.hpp"
#include "dlpack/describe.hpp"
#include "host/element_io.hpp"

namespace ferry::bind {
namespace {

// An offset into storage whose memory was taken away begins at null: no heap of a usual process is down there. Where
// one is, tensors are read the careful way.
constexpr std::uintptr_t lowest_plain_address = std::uintptr_t{1} << 40;

bool has_one_element(const DLTensor& tensor) noexcept {
  for (int i = 0; i < tensor.ndim; ++i) {
    if (tensor.shape[i] != 1) return false;
  }
  return true;
}

bool is_number(DType dtype) noexcept { return info(dtype).kind != Kind::complex && info(dtype).elements_per_item == 1; }

// Only the imaginary part of a conjugated number is a negative view. Such numbers are aligned to their own size in
// torch's memory, so that the place of an imaginary part is no multiple of it.
bool may_be_negative(const DLTensor& tensor, DType dtype) noexcept {
  const bool is_part = dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data);
  return is_part && address % (std::uintptr_t{2} * info(dtype).itemsize) != 0;
}

bool ask_table(PyObject* tensor, const FastType& type, DLTensor& dl) noexcept {
  if (type.api->dltensor_from_py_object_no_sync(tensor, &dl) == 0) return true;
  PyErr_Clear();
  return false;
}

// torch.uint4 and its like look the same here.
bool may_be_small(DType dtype) noexcept { return dtype == DType::uint8 || dtype == DType::int8; }

}  // namespace

std::optional<double> Scalar::floating() const noexcept {
  if (dtype == DType::float32) {  // the commonest, without a detour
    float value = 0;
    std::memcpy(&value, data, sizeof value);
    return static_cast<double>(value);
  }
  if (info(dtype).kind != Kind::floating) return std::nullopt;
  Block block;
  element_io(dtype, false).load(data, info(dtype).itemsize, 1, block);
  return *block.as<double>();
}

PyRef Scalar::number() const {
  if (const auto value = floating()) return checked(PyFloat_FromDouble(*value));
  if (dtype == DType::bool_) return checked(PyBool_FromLong(*data != std::byte{0} ? 1 : 0));
  Block block;
  const ElementIO io = element_io(dtype, false);
  io.load(data, info(dtype).itemsize, 1, block);
  return io.carrier == Carrier::int64 ? checked(PyLong_FromLongLong(*block.as<std::int64_t>()))
                                      : checked(PyLong_FromUnsignedLongLong(*block.as<std::uint64_t>()));
}

std::optional<double> plain_float_of(PyObject* tensor, const FastType& type) noexcept {
  DLTensor dl{};
  if (!ask_table(tensor, type, dl)) return std::nullopt;
  const auto address = reinterpret_cast<std::uintptr_t>(dl.data) + dl.byte_offset;
  const bool is_float = dl.dtype.code == kDLFloat && dl.dtype.bits == 32 && dl.dtype.lanes == 1;
  const bool is_plain = address >= lowest_plain_address && address % (2 * sizeof(float)) == 0;  // as may_be_negative()
  if (!is_float || dl.ndim != 0 || dl.device.device_type != kDLCPU || !is_plain) return std::nullopt;
  float value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return static_cast<double>(value);
}

std::optional<Scalar> scalar_of(PyObject* tensor, const FastType& type) {
  DLTensor dl{};
  if (!ask_table(tensor, type, dl)) return std::nullopt;
  if (dl.device.device_type != kDLCPU || !has_one_element(dl)) return std::nullopt;
  const auto dtype = dtype_from_dlpack(dl.dtype);
  if (!dtype || !is_number(*dtype)) return std::nullopt;
  const bool is_plain = reinterpret_cast<std::uintptr_t>(dl.data) >= lowest_plain_address;
  bool is_known = is_plain && !may_be_small(*dtype);
  if (is_known && may_be_negative(dl, *dtype)) {
    // Torch lets go of the GIL to answer: the table is asked again.
    const void* const data = dl.data;
    is_known = !torch_is_neg(tensor) && ask_table(tensor, type, dl) && dl.data == data && has_one_element(dl);
  }
  if (is_known) {
    return Scalar{static_cast<const std::byte*>(dl.data) + dl.byte_offset, *dtype, {}};
  }
  TorchReading reading;
  if (!read_torch(tensor, type, reading) || reading.negated || !has_one_element(reading.dl)) return std::nullopt;
  return Scalar{static_cast<const std::byte*>(reading.dl.data) + reading.dl.byte_offset, reading.dtype,
                std::move(reading.storage)};
}

}  // namespace ferry::bind
