// Questions about values.
#include <pybind11/pybind11.h>

#include <cmath>
#include <limits>
#include <optional>

#include "bind/gil.hpp"
#include "bind/numpy_api.hpp"
#include "bind/register.hpp"
#include "bind/threads.hpp"
#include "bind/torch_source.hpp"
#include "host/parallel.hpp"
#include "host/scan.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

constexpr std::int64_t release_gil_above_nbytes = 32 * 1024;

template <class Scan>
ScanReport scanned(const TensorRef& ref, Scan&& scan) {
  const std::int64_t nbytes = element_count(ref.layout.shape).value_or(0) * ref.layout.itemsize;
  const ThreadLimit threads(threads_for(nbytes));
  const GilReleased released(nbytes >= release_gil_above_nbytes);
  return scan();
}

ScanReport nonfinite(const TensorRef& ref) {
  return scanned(ref, [&] { return scan_nonfinite(ref); });
}

ScanReport outside(const TensorRef& ref, double low, double high) {
  return scanned(ref, [&] { return scan_outside(ref, low, high); });
}

py::tuple as_pair(const ScanReport& report) { return py::make_tuple(report.count, report.first); }

// The number, or nothing where a double might not hold it; `none` is what None stands for.
std::optional<double> exact_bound(const py::handle& bound, double none) {
  constexpr double exact_below = 9007199254740992.0;  // 2^53
  if (bound.is_none()) return none;
  if (PyFloat_Check(bound.ptr())) return PyFloat_AS_DOUBLE(bound.ptr());
  if (!PyLong_Check(bound.ptr())) return std::nullopt;
  const double value = PyLong_AsDouble(bound.ptr());
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return std::nullopt;
  }
  return std::abs(value) < exact_below ? std::optional(value) : std::nullopt;
}

bool is_within(const TensorRef& ref, const py::handle& limits) {
  if (!PyTuple_Check(limits.ptr()) || PyTuple_GET_SIZE(limits.ptr()) != 2) return false;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto low = exact_bound(PyTuple_GET_ITEM(limits.ptr(), 0), -infinity);
  const auto high = exact_bound(PyTuple_GET_ITEM(limits.ptr(), 1), infinity);
  if (!low || !high || !(*low <= *high) || info(ref.dtype).kind == Kind::complex) return false;
  return outside(ref, *low, *high).count == 0;
}

bool values_pass(const py::handle& x, bool finite, const py::handle& limits) {
  const auto source = plain_source(x.ptr());
  if (!source) return false;
  if (finite && nonfinite(source->ref).count > 0) return false;
  return limits.is_none() || is_within(source->ref, limits);
}

py::object plain_source_of(const py::handle& x) {
  auto source = plain_source(x.ptr());
  return source ? py::cast(std::move(*source)) : py::none();
}

}  // namespace

void register_scan(py::module_& module) {
  module.def(
      "scan_nonfinite", [](const Source& source) { return as_pair(nonfinite(source.ref)); }, py::arg("source"),
      "(count, first flat index) of NaN and infinities; blocks until done, without the GIL.");
  module.def(
      "scan_outside",
      [](const Source& source, double low, double high) { return as_pair(outside(source.ref, low, high)); },
      py::arg("source"), py::arg("low"), py::arg("high"),
      "(count, first flat index) of values outside [low, high]; blocks until done, without the GIL.");
  module.def("plain_source", &plain_source_of, py::arg("x"), "The Source of a plain array or host tensor, else None.");
  module.def("values_pass", &values_pass, py::arg("x"), py::arg("finite"), py::arg("limits"),
             "Is x a plain array or host tensor whose values pass? False leaves open what it is, and why not.");
}

}  // namespace ferry::bind
