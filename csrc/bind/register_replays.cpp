// Metrics that the replays of a graph leave behind, for the Python layer.
#include <pybind11/stl.h>

#include <optional>
#include <utility>
#include <vector>

#include "bind/errors.hpp"
#include "bind/metric_replays.hpp"
#include "bind/register.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

py::object take_of(MetricReplays& self) {
  PyObject* made = guarded([&]() -> PyObject* {
    auto taken = self.take();
    if (!taken) Py_RETURN_NONE;
    return py::make_tuple(taken->first, py::reinterpret_steal<py::object>(taken->second.release())).release().ptr();
  });
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

bool wait_for(const std::vector<const MetricReplays*>& replays, double timeout) {
  std::vector<std::shared_ptr<ReplayRing>> rings;
  for (const MetricReplays* one : replays) rings.push_back(one->ring());
  return wait_for_replays(rings, timeout);
}

}  // namespace

void register_replays(py::module_& module) {
  py::class_<MetricReplays>(module, "MetricReplays", "Metrics that the replays of a graph leave behind.")
      .def_static(
          "make",
          [](const py::list& tensors, const DeviceSource& counter, std::uint64_t slots) {
            return MetricReplays::make(tensors.ptr(), counter, slots);
          },
          py::arg("tensors"), py::arg("counter"), py::arg("slots"),
          "Memory for so many replays of a step like this; None where that cannot be.")
      .def(
          "fits", [](const MetricReplays& self, const py::list& tensors) { return self.fits(tensors.ptr()); },
          py::arg("tensors"), "Could a step of these tensors be captured?")
      .def(
          "capture",
          [](MetricReplays& self, const py::list& tensors, std::int64_t stream) {
            return self.capture(tensors.ptr(), stream);
          },
          py::arg("tensors"), py::arg("stream"),
          "Make it part of the graph that the stream is capturing; False where it does not fit.")
      .def("take", &take_of, "The number and the values of the oldest replay that was not taken; None where none is.")
      .def("is_graph_gone", &MetricReplays::is_graph_gone, "Can no replay come any more?")
      .def_property_readonly("gaps", &MetricReplays::gaps)
      .def_property_readonly("device", &MetricReplays::device);
  module.def("wait_for_replays", &wait_for, py::arg("replays"), py::arg("timeout"),
             "Look at them, without the GIL, until one has something to take; False when the time is up.");
}

}  // namespace ferry::bind
