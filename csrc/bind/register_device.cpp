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
#include "bind/poison.hpp"
#include "bind/register.hpp"
#include "bind/tuples.hpp"
#include "cuda/driver.hpp"
#include "transfer/kernel_copy.hpp"

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

ArrivalPlan arrival_for(const Source& source, bool producer_packs, bool host_waits, bool kernels,
                        const std::string& order, const std::string& dtype) {
  const KernelWish wish{source.ref.dtype, dtype.empty() ? source.ref.dtype : named_dtype(dtype),
                        order_names.value(order), host_waits};
  return plan_arrival(source.ref, wish, producer_packs, kernels);
}

void register_arrival(py::module_& module) {
  py::class_<ArrivalPlan>(module, "Arrival", "How a tensor on a device comes to lie in host memory.")
      .def_property_readonly("packs", [](const ArrivalPlan& self) { return self.arrival.packs; })
      .def_property_readonly("by_kernel", [](const ArrivalPlan& self) { return self.arrival.by_kernel; })
      .def_property_readonly("is_run", [](const ArrivalPlan& self) { return is_run(self.arrival); })
      .def_property_readonly("kernels", [](const ArrivalPlan& self) { return self.kernels; })
      .def_property_readonly("strides", [](const ArrivalPlan& self) { return as_tuple(self.arrival.strides); })
      .def_property_readonly("nbytes", [](const ArrivalPlan& self) { return self.arrival.nbytes; })
      .def_property_readonly("dtype", [](const ArrivalPlan& self) { return std::string(info(self.arrival.to).name); })
      .def(
          "way",
          [](const ArrivalPlan& self, const Source& lying, const Source* destination, bool ring, int device,
             const std::string& snapshot) {
            const WayOverTheLink way = way_over_the_link(self, lying, destination, ring, device, snapshot);
            return py::make_tuple(way.path, way.launches);
          },
          py::arg("lying"), py::arg("destination"), py::kw_only(), py::arg("ring"), py::arg("device"),
          py::arg("snapshot"), "The way over the link, and how many kernels are launched for it.");
  module.def(
      "arrival", &arrival_for, py::arg("source"), py::kw_only(), py::arg("producer_packs"), py::arg("host_waits"),
      py::arg("kernels") = false, py::arg("order") = "K", py::arg("dtype") = "",
      "How a tensor on a device comes to lie in host memory; with kernels, in this order and cast to the dtype.");
  module.def("kernels_there", &kernels_there, py::arg("device"), py::kw_only(), py::arg("load"),
             "Are our kernels there for tensors of a device? Without loading only what is known, or to be expected.");
  module.def(
      "kernels_cast",
      [](const std::string& from, const std::string& to) {
        return kernels_can_cast(named_dtype(from), named_dtype(to));
      },
      py::arg("source"), py::arg("target"), "Can kernels cast so?");
  module.def(
      "cast_alignment", [](const std::string& dtype) { return cast_alignment(named_dtype(dtype)); }, py::arg("dtype"),
      "Bytes that divide every address that a cast by kernels touches.");
  module.attr("most_gathered_nbytes") = most_gathered_nbytes;
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
          [](Fetch& self, const DeviceSource& source, const Source& described,
             const ArrivalPlan& arrival) -> py::object {
            auto arrived = self.add(source, described, arrival);
            return arrived ? py::cast(std::move(*arrived)) : py::none();
          },
          py::arg("source"), py::arg("described"), py::arg("arrival"),
          "Enqueue the copy into pinned memory; None when there is none. The values are there once it was waited for.")
      .def(
          "expect",
          [](Fetch& self, const std::vector<std::size_t>& nbytes) {
            std::size_t together = 0;
            for (const std::size_t one : nbytes) together += gathered_nbytes(one);
            self.expect(together, nbytes.size());
          },
          py::arg("nbytes"), "Small tensors of these sizes will be added: they are gathered where kernels are there.")
      .def(
          "add_into",
          [](Fetch& self, const DeviceSource& source, const Source& destination, const ArrivalPlan* arrival) {
            self.add_into(source, destination, arrival == nullptr ? ArrivalPlan{} : *arrival);
          },
          py::arg("source"), py::arg("destination"), py::arg("arrival") = py::none(),
          "Enqueue the copy into a destination that goes_directly() says yes to.")
      .def(
          "close", [](Fetch& self) { return PendingCopies{self.close()}; }, "What to wait for.")
      .def_property_readonly("nbytes", [](const Fetch& self) { return self.nbytes(); })
      .def_property_readonly("driver_copies", [](const Fetch& self) { return self.driver_copies(); })
      .def_property_readonly("launches", [](const Fetch& self) { return self.launches(); })
      .def_property_readonly("snapshots", [](const Fetch& self) { return self.snapshots(); })
      .def_property_readonly("tensors", [](const Fetch& self) { return self.tensors(); });
  module.def("goes_directly", &goes_directly, py::arg("described"), py::arg("destination"), py::arg("device"),
             "May copies from the device fill this destination itself?");
  module.def(
      "fetch_into",
      [](const DeviceSource& source, const std::string& reads_as, const Source& destination) {
        fetch_into(source, named_dtype(reads_as), destination);
      },
      py::arg("source"), py::arg("reads_as"), py::arg("destination"),
      "Copy into ordinary memory of any layout and dtype through pinned pieces; blocks, without the GIL.");
  module.def("fetch_new", &fetch_new, py::arg("source"), py::arg("described"), py::arg("arrival"),
             "The same into new ordinary memory.");
  module.def(
      "send",
      [](const DeviceSource& destination, const std::string& dtype, const Source& source) -> py::object {
        auto pending = send(destination, named_dtype(dtype), source);
        return pending ? py::cast(PendingCopies{std::move(pending)}) : py::none();
      },
      py::arg("destination"), py::arg("dtype"), py::arg("source"),
      "Fill a device tensor; the source may be changed afterwards. Blocks while the ring is full, or while pinned"
      " memory is read, without the GIL. None for scattered tensors that their own library fills better.");
}

// What fences of pinned memory have to know of the library whose streams are added.
void register_foreign(py::module_& module) {
  module.def(
      "foreign_streams_wanted",
      [] {
        Transfers* used = transfers_if_used();
        return used != nullptr && used->runtime().foreign().wanted();
      },
      "Does a fence wait until the streams of all devices in use were added?");
  module.def(
      "foreign_tick",
      [] {
        Transfers* used = transfers_if_used();
        return used == nullptr ? std::uint64_t{0} : used->runtime().foreign().tick();
      },
      "The number of this moment.");
  module.def(
      "foreign_had_not_begun",
      [](std::uint64_t tick) {
        if (Transfers* used = transfers_if_used()) used->runtime().foreign().had_not_begun(tick);
      },
      py::arg("tick"), "The library was asked after that moment, and had not begun to use a device.");
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
  register_arrival(module);
  register_fetch(module);
  module.def("start_completion_thread", without_gil(&start_completion_thread));
  module.def("stop_completion_thread", without_gil(&stop_completion_thread));
  module.def("completion_thread_runs", without_gil(&completion_thread_runs));
  module.def("reap", without_gil(&reap_now), "Let go of whatever is done.");
  module.def(
      "poison", [](const Source& destination) { poison(destination.ref); }, py::arg("destination"),
      "Fill every element with bytes that are no sensible value, if TENSORFERRY_DEBUG asks for that.");
  module.def(
      "set_staging_source", [](const py::object& source) { set_python_staging_source(PyRef::borrow(source.ptr())); },
      py::arg("source"),
      "Who is asked for device memory to take snapshots in: source(device, nbytes) -> (address, stream, owner) or"
      " None.");
  module.def("note_known_device", &note_known_device, py::arg("device"),
             "Torch's streams and memory of this device were introduced.");
  module.def("add_foreign_streams", &add_foreign_streams, py::arg("device"), py::arg("handles"),
             "Streams of others that must have passed before pinned memory is used again; False for an unused device.");
  register_foreign(module);
  module.def("set_transfer_limits", &set_transfer_limits, py::kw_only(), py::arg("results_nbytes") = py::none(),
             py::arg("ring_nbytes") = py::none(), py::arg("staging_nbytes") = py::none(),
             py::arg("kernels") = py::none());
  module.def(
      "transfer_limits",
      [] {
        const TransferLimits limits = transfer_limits();
        py::dict figures;
        figures["results_nbytes"] = limits.results_nbytes;
        figures["ring_nbytes"] = limits.ring_nbytes;
        figures["staging_nbytes"] = limits.staging_nbytes;
        figures["kernels"] = limits.kernels;
        return figures;
      },
      "The limits that hold.");
  module.def("pinned_stats", &pinned_stats, "The figures of the pool of pinned results; None before its first use.");
}

}  // namespace ferry::bind
