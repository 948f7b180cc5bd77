// The device path for the Python layer: what lies on a device, and bringing it to host memory and back.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <vector>

#include "bind/device_leaf.hpp"
#include "bind/device_path.hpp"
#include "bind/device_source.hpp"
#include "bind/fetch.hpp"
#include "bind/gil.hpp"
#include "bind/names.hpp"
#include "bind/pending_copies.hpp"
#include "bind/pinned_memory.hpp"
#include "bind/register.hpp"
#include "bind/tuples.hpp"
#include "cuda/driver.hpp"
#include "transfer/arrival.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

using Shape = std::vector<std::int64_t>;

Extents extents(const Shape& values) { return Extents(std::span<const std::int64_t>(values)); }

// Not pybind11's guard: that one may not be unwound.
template <class Result>
auto without_gil(Result (*function)()) {
  return [function] {
    const GilReleased released(true);
    return function();
  };
}

std::string problem_of_driver(bool initialise) {
  if (!initialise) {
    const auto problem = cuda::opening_problem();
    return problem ? problem->given + ": " + problem->why : "";
  }
  try {
    static_cast<void>(transfers());
    return "";
  } catch (const Error& error) {
    return error.given() + ": " + error.why();
  }
}

py::object pinned_stats() {
  Transfers* used = transfers_if_used();
  if (used == nullptr) return py::none();
  const PinnedStats stats = used->results().stats();
  py::dict figures;
  figures["in_use_nbytes"] = stats.in_use_nbytes;
  figures["in_use_leases"] = stats.in_use_leases;
  figures["idle_nbytes"] = stats.idle_nbytes;
  figures["retired_nbytes"] = stats.retired_nbytes;
  figures["limit_nbytes"] = stats.limit_nbytes;
  figures["high_water_nbytes"] = stats.high_water_nbytes;
  figures["hits"] = stats.hits;
  figures["misses"] = stats.misses;
  figures["refusals"] = stats.refusals;
  figures["trims"] = stats.trims;
  figures["epochs"] = stats.epochs;
  return figures;
}

py::dict described_arrival(const Source& source, bool producer_packs, bool host_waits) {
  const Arrival arrival = arrival_of(source.ref.layout, producer_packs, host_waits);
  py::dict facts;
  facts["packs"] = arrival.packs;
  facts["strides"] = as_tuple(arrival.strides);
  facts["nbytes"] = arrival.nbytes;
  return facts;
}

void register_fetch(py::module_& module) {
  py::class_<PendingCopies>(module, "Pending", "Copies that were enqueued together.")
      .def("done", &PendingCopies::done, "Are they done? Never waits; raises what the device answered.")
      .def("wait", &PendingCopies::wait, py::arg("timeout"), "Wait, without the GIL; False when the time is up.")
      .def("add_callback", &PendingCopies::add_callback, py::arg("call"), "Call once when they are done or failed.");
  py::class_<Fetch>(module, "Fetch", "Values on their way from devices to host memory; waited for together.")
      .def(py::init<const std::string&, const std::string&>(), py::kw_only(), py::arg("snapshot"),
           py::arg("back_pressure"))
      .def(
          "add",
          [](Fetch& self, const DeviceSource& source, const Source& described, bool host_waits) -> py::object {
            auto arrived = self.add(source, described, host_waits);
            return arrived ? py::cast(std::move(*arrived)) : py::none();
          },
          py::arg("source"), py::arg("described"), py::kw_only(), py::arg("host_waits"),
          "Enqueue the copy into pinned memory; None when there is none. The values are there once it was waited for.")
      .def("add_into", &Fetch::add_into, py::arg("source"), py::arg("destination"),
           "Enqueue the copy into a destination that goes_directly() says yes to.")
      .def(
          "close", [](Fetch& self) { return PendingCopies{self.close()}; }, "What to wait for.")
      .def_property_readonly("nbytes", [](const Fetch& self) { return self.nbytes(); })
      .def_property_readonly("driver_copies", [](const Fetch& self) { return self.driver_copies(); })
      .def_property_readonly("snapshots", [](const Fetch& self) { return self.snapshots(); })
      .def_property_readonly("tensors", [](const Fetch& self) { return self.tensors(); });
  module.def("goes_directly", &goes_directly, py::arg("described"), py::arg("destination"), py::arg("device"),
             "May copies from the device fill this destination itself?");
  module.def("fetch_into", &fetch_into, py::arg("source"), py::arg("described"), py::arg("destination"),
             "Copy into ordinary memory of any layout and dtype through pinned pieces; blocks, without the GIL.");
  module.def("fetch_new", &fetch_new, py::arg("source"), py::arg("described"), py::kw_only(), py::arg("host_waits"),
             "The same into new ordinary memory.");
  module.def(
      "send",
      [](const DeviceSource& destination, const std::string& dtype, const Source& source) {
        return PendingCopies{send(destination, named_dtype(dtype), source)};
      },
      py::arg("destination"), py::arg("dtype"), py::arg("source"),
      "Fill a device tensor; the source may be changed afterwards. Blocks while the ring is full, without the GIL.");
}

}  // namespace

void register_device(py::module_& module) {
  static_cast<void>(transfer_limits());  // made now: a fork must not find another thread in the middle of making it
  py::class_<DeviceSource>(module, "DeviceSource", "A tensor in the memory of a CUDA device.")
      .def_static(
          "from_capsule",
          [](const py::object& capsule, std::int64_t stream) {
            return device_source_from_capsule(capsule.ptr(), stream);
          },
          py::arg("capsule"), py::arg("stream"))
      .def_static(
          "from_exchange",
          [](const py::object& producer, std::int64_t stream) {
            return device_source_from_exchange(producer.ptr(), stream);
          },
          py::arg("producer"), py::arg("stream"))
      .def_static(
          "over",
          [](std::uintptr_t address, const std::string& dtype, const Shape& shape, const Shape& strides, int device,
             std::int64_t stream, const py::object& owner) {
            const DType label = named_dtype(dtype);
            return device_source_over(address, Layout{extents(shape), extents(strides), info(label).itemsize}, label,
                                      device, stream, PyRef::borrow(owner.ptr()));
          },
          py::arg("address"), py::arg("dtype"), py::arg("shape"), py::arg("strides"), py::arg("device"),
          py::arg("stream"), py::arg("owner"))
      .def(
          "as_snapshot",
          [](const DeviceSource& self) {
            DeviceSource snapshot = self;
            snapshot.is_snapshot = true;
            return snapshot;
          },
          "The same, made for one call: nobody else writes to it.")
      .def_property_readonly("dtype",
                             [](const DeviceSource& self) { return std::string(info(self.tensor.ref.dtype).name); })
      .def_property_readonly("shape", [](const DeviceSource& self) { return as_tuple(self.tensor.ref.layout.shape); })
      .def_property_readonly("strides",
                             [](const DeviceSource& self) { return as_tuple(self.tensor.ref.layout.strides); })
      .def_property_readonly("address", [](const DeviceSource& self) { return device_address(self.tensor.ref.data); })
      .def_property_readonly("read_only", [](const DeviceSource& self) { return self.tensor.ref.read_only; })
      .def_property_readonly("device", [](const DeviceSource& self) { return self.tensor.device; });
  module.def(
      "work_stream_of",
      [](const py::object& type, int device) {
        return work_stream_of(reinterpret_cast<PyTypeObject*>(type.ptr()), device);
      },
      py::arg("type"), py::arg("device"), "The current stream of a producer's type, as DLPack's number, or None.");
  module.def("device_of_address", &device_of_address, py::arg("address"),
             "The ordinal of the device that this memory is on.");
  module.def("ordering_stream", &ordering_stream_for, py::arg("device"),
             "A stream of ours, for producers that order their work before a stream they are given.");
  module.def("driver_status", &cuda::driver_status, "One line about the driver; initialises nothing.");
  module.def("driver_problem", &problem_of_driver, py::kw_only(), py::arg("initialise"),
             "Why the device path cannot be used, empty when it can; without initialising only what opening shows.");
  module.def("arrival", &described_arrival, py::arg("source"), py::kw_only(), py::arg("producer_packs"),
             py::arg("host_waits"), "How a tensor on a device comes to lie in host memory.");
  register_fetch(module);
  module.def("start_completion_thread", without_gil(&start_completion_thread));
  module.def("stop_completion_thread", without_gil(&stop_completion_thread));
  module.def("completion_thread_runs", without_gil(&completion_thread_runs));
  module.def("reap", without_gil(&reap_now), "Let go of whatever is done.");
  module.def(
      "set_staging_source", [](const py::object& source) { set_python_staging_source(PyRef::borrow(source.ptr())); },
      py::arg("source"),
      "Who is asked for device memory to take snapshots in: source(device, nbytes) -> (address, stream, owner) or"
      " None.");
  module.def("note_known_device", &note_known_device, py::arg("device"),
             "Torch's streams and memory of this device were introduced.");
  module.def("add_foreign_streams", &add_foreign_streams, py::arg("device"), py::arg("handles"),
             "Streams of others that must have passed before pinned memory is used again.");
  module.def("set_transfer_limits", &set_transfer_limits, py::kw_only(), py::arg("results_nbytes") = py::none(),
             py::arg("ring_nbytes") = py::none(), py::arg("staging_nbytes") = py::none());
  module.def(
      "transfer_limits",
      [] {
        const TransferLimits limits = transfer_limits();
        py::dict figures;
        figures["results_nbytes"] = limits.results_nbytes;
        figures["ring_nbytes"] = limits.ring_nbytes;
        figures["staging_nbytes"] = limits.staging_nbytes;
        return figures;
      },
      "The limits that hold.");
  module.def("pinned_stats", &pinned_stats, "The figures of the pool of pinned results; None before its first use.");
}

}  // namespace ferry::bind
