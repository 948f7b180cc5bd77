// Deciding and executing, for the Python layer.
#include <pybind11/stl.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bind/departure.hpp"
#include "bind/errors.hpp"
#include "bind/execute.hpp"
#include "bind/names.hpp"
#include "bind/owned_tensor.hpp"
#include "bind/register.hpp"
#include "bind/tuples.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

Decision decide_source(const Source& source, const std::string& target, const std::string& copy,
                       const std::string& dtype, const std::string& casting, const std::string& order,
                       const std::string& readonly, bool into_destination, bool lazy_possible, bool private_memory) {
  Request request;
  request.target = target_names.value(target);
  request.copy = copy_names.value(copy);
  if (dtype == "keep") {
    request.dtype_choice = DTypeChoice::keep;
  } else if (dtype == "numpy") {
    request.dtype_choice = DTypeChoice::native;
  } else if (dtype == "bits") {
    request.dtype_choice = DTypeChoice::bits;
  } else {
    request.dtype_choice = DTypeChoice::named;
    request.dtype = named_dtype(dtype);
  }
  request.casting = casting_names.value(casting);
  request.order = order_names.value(order);
  request.read_only = read_only_names.value(readonly);
  request.into_destination = into_destination;
  request.lazy_possible = lazy_possible;
  request.private_memory = private_memory;
  request.no_memory = source.no_memory;
  return decide(source.ref, request);
}

}  // namespace

void register_plan(py::module_& module) {
  module.def(
      "departure",
      [](const Source& source, const std::string& dtype, const std::vector<std::int64_t>& strides, int device,
         bool kernels) {
        const Departure way =
            departure_of(source, named_dtype(dtype), Extents(std::span<const std::int64_t>(strides)), device, kernels);
        return py::make_tuple(way.path, way.launches, std::string(info(way.dtype).name), way.nbytes);
      },
      py::arg("source"), py::arg("dtype"), py::arg("strides"), py::kw_only(), py::arg("device"), py::arg("kernels"),
      "The way to a new tensor: its name, launches of kernels, and dtype and bytes over the link.");
  py::class_<Decision>(module, "Decision", "What a conversion will do; made by decide().")
      .def_property_readonly("path", [](const Decision& self) { return path_names.name(self.path); })
      .def_property_readonly("causes", [](const Decision& self) { return self.causes.explain(); })
      .def_property_readonly("value_dtype",
                             [](const Decision& self) { return std::string(info(self.value_dtype).name); })
      .def_property_readonly("result_dtype",
                             [](const Decision& self) { return std::string(info(self.result_dtype).name); })
      .def_property_readonly("writable", [](const Decision& self) { return self.writable; })
      .def_property_readonly("checks_values", [](const Decision& self) { return self.checks_values; })
      .def_property_readonly("shares_memory", [](const Decision& self) { return self.shares_memory(); })
      .def_property_readonly("shape", [](const Decision& self) { return as_tuple(self.shape); })
      .def_property_readonly("strides", [](const Decision& self) { return as_tuple(self.strides); })
      .def_property_readonly("nbytes_moved", [](const Decision& self) { return self.nbytes_moved; });
  module.def("decide", &decide_source, py::arg("source"), py::kw_only(), py::arg("target") = "numpy",
             py::arg("copy") = "if_needed", py::arg("dtype") = "keep", py::arg("casting") = "same_kind",
             py::arg("order") = "K", py::arg("readonly") = "copy", py::arg("into_destination") = false,
             py::arg("lazy_possible") = false, py::arg("private_memory") = false,
             "Choose the path; touches no memory.");
  module.def(
      "execute",
      [](const Source& source, const Decision& decision, const py::object& destination) {
        auto* array = destination.is_none() ? nullptr : reinterpret_cast<PyArrayObject*>(destination.ptr());
        return py::reinterpret_steal<py::object>(execute(source, decision, array).release());
      },
      py::arg("source"), py::arg("decision"), py::arg("destination") = py::none(),
      "Make the array that was decided on; a destination is filled and returned.");
  module.def(
      "empty_tensor",
      [](const Decision& decision) -> py::object {
        auto owned = owned_tensor(decision.result_dtype, decision.shape, decision.strides);
        if (!owned) return py::none();
        Source destination;
        destination.ref = owned->ref;
        destination.ref.dtype = decision.value_dtype;
        destination.owner = owned->tensor;
        return py::make_tuple(py::reinterpret_steal<py::object>(owned->tensor.release()), destination);
      },
      py::arg("decision"), "A new torch tensor, and where to fill it; None where torch has to make it itself.");
  module.def(
      "owned_source",
      [](const Decision& decision) { return owned_source(decision.value_dtype, decision.shape, decision.strides); },
      py::arg("decision"), "Memory for a tensor that torch makes over it.");
  module.def(
      "writable_array",
      [](const Source& source, const Decision& decision) {
        return py::reinterpret_steal<py::object>(
            array_over(source.ref, decision.result_dtype, true, source.owner).release());
      },
      py::arg("source"), py::arg("decision"), "An array over the source's memory that may be written to.");
  module.def(
      "warn_about_extension", [](const std::string& dtype) { warn_about_extension(named_dtype(dtype)); },
      py::arg("dtype"), "Warn, once per process, that ml_dtypes arithmetic surprises.");
}

}  // namespace ferry::bind
