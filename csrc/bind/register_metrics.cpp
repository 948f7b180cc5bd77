// Metrics on their way to where they are logged.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/errors.hpp"
#include "bind/metric_send.hpp"
#include "bind/metric_values.hpp"
#include "bind/names.hpp"
#include "bind/register.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

template <class Result, class Body>
Result as_object(Body&& body) {
  PyObject* made = guarded(std::forward<Body>(body));
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<Result>(made);
}

py::dict read_metrics_of(const py::dict& metrics, const py::list& others, const py::list& spares) {
  return as_object<py::dict>([&] { return read_metrics(metrics.ptr(), others.ptr(), spares.ptr()).release(); });
}

std::optional<SentMetrics> gather_metrics_of(const py::list& tensors, int device, std::int64_t stream) {
  return gather_metrics(tensors.ptr(), device, stream);
}

std::optional<SentMetrics> send_metrics_of(const std::vector<std::pair<DeviceSource, std::string>>& blocks) {
  std::vector<std::pair<DeviceSource, DType>> named;
  for (const auto& [block, dtype] : blocks) named.emplace_back(block, named_dtype(dtype));
  return send_metrics(named);
}

}  // namespace

void register_metrics(py::module_& module) {
  module.def("read_metrics", &read_metrics_of, py::arg("metrics"), py::arg("others"), py::arg("spares"),
             "The same keys with the numbers that are on the host now; keys of what takes more are added to others."
             " A dict among the spares that nobody holds any more may be filled again.");
  py::class_<SentMetrics>(module, "SentMetrics", "Metrics on their way from a device.")
      .def(
          "done", [](const SentMetrics& self) { return self.pending().done(); },
          "Are they there? Never waits; raises what the device answered.")
      .def(
          "wait", [](const SentMetrics& self, std::optional<double> timeout) { return self.pending().wait(timeout); },
          py::arg("timeout"), "Wait, without the GIL; False when the time is up.")
      .def(
          "numbers",
          [](const SentMetrics& self) { return as_object<py::list>([&] { return self.numbers().release(); }); },
          "All numbers in their order; waits for them, without the GIL.");
  module.def("gather_metrics", &gather_metrics_of, py::arg("tensors"), py::arg("device"), py::arg("stream"),
             "Send torch tensors of one device by one kernel; None where that cannot be.");
  module.def("send_metrics", &send_metrics_of, py::arg("blocks"),
             "Send blocks that were gathered already, each with the dtype of its bytes; None where there is no pinned"
             " memory.");
}

}  // namespace ferry::bind
