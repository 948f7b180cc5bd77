#include "bind/python_number.hpp"

#include <complex>
#include <cstring>

#include "bind/torch_source.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

template <class T>
T value_at(const std::byte* data) noexcept {
  T value;
  std::memcpy(&value, data, sizeof(value));
  return value;
}

py::object number_at(const std::byte* data, DType dtype) {
  switch (dtype) {
    case DType::bool_:
      return py::bool_(*data != std::byte{0});
    case DType::uint8:
      return py::int_(value_at<std::uint8_t>(data));
    case DType::uint16:
      return py::int_(value_at<std::uint16_t>(data));
    case DType::uint32:
      return py::int_(value_at<std::uint32_t>(data));
    case DType::uint64:
      return py::int_(value_at<std::uint64_t>(data));
    case DType::int8:
      return py::int_(value_at<std::int8_t>(data));
    case DType::int16:
      return py::int_(value_at<std::int16_t>(data));
    case DType::int32:
      return py::int_(value_at<std::int32_t>(data));
    case DType::int64:
      return py::int_(value_at<std::int64_t>(data));
    case DType::float32:
      return py::float_(static_cast<double>(value_at<float>(data)));
    case DType::float64:
      return py::float_(value_at<double>(data));
    case DType::complex64: {
      const auto value = value_at<std::complex<float>>(data);
      return py::reinterpret_steal<py::object>(PyComplex_FromDoubles(value.real(), value.imag()));
    }
    case DType::complex128: {
      const auto value = value_at<std::complex<double>>(data);
      return py::reinterpret_steal<py::object>(PyComplex_FromDoubles(value.real(), value.imag()));
    }
    default:
      return py::none();
  }
}

}  // namespace

py::object python_number(const py::handle& x) {
  const FastType* type = fast_type(Py_TYPE(x.ptr()));
  if (type == nullptr || !type->is_torch) return py::none();
  TorchReading reading;
  if (!has_no_axes(x.ptr(), *type) || !read_torch(x.ptr(), *type, reading)) return py::none();
  if (reading.negated || reading.conjugated) return py::none();
  return number_at(static_cast<const std::byte*>(reading.dl.data) + reading.dl.byte_offset, reading.dtype);
}

}  // namespace ferry::bind
