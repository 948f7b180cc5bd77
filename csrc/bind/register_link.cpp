// The link between a device and the host for the Python layer: what it is, how fast it is, and the figures in use.
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "bind/device_path.hpp"
#include "bind/gil.hpp"
#include "bind/register.hpp"
#include "cuda/driver_error.hpp"
#include "pinned/numa_node.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

const char* name_of(FiguresFrom from) noexcept {
  switch (from) {
    case FiguresFrom::defaults:
      return "default";
    case FiguresFrom::link:
      return "link";
    case FiguresFrom::calibrated:
      return "calibrated";
  }
  return "";
}

py::dict as_dict(const LinkFigures& figures) {
  py::dict dict;
  dict["source"] = name_of(figures.from);
  dict["to_host_nbytes_per_s"] = figures.nbytes_per_s;
  dict["stores_when_waiting_nbytes"] = figures.stores_when_waiting;
  dict["stores_when_not_nbytes"] = figures.stores_when_not;
  dict["stores_of_blocks_nbytes"] = figures.stores_of_blocks;
  dict["rows_from_nbytes"] = figures.rows_from;
  dict["gathers_below_nbytes"] = figures.gathers_below;
  return dict;
}

py::dict link_figures(std::optional<int> device) {
  Transfers* used = transfers_if_used();
  if (!device || used == nullptr) return as_dict({});
  LinkFigures figures;
  {
    const GilReleased released(true);
    figures = used->link(*device);
  }
  return as_dict(figures);
}

std::string hexadecimal(const cuda::CUuuid& uuid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : uuid.bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

py::dict link_identity(int device) {
  cuda::Runtime& runtime = transfers().runtime();
  const cuda::Functions& functions = runtime.functions();
  std::array<char, 256> name{};
  std::array<char, 32> bus_id{};
  cuda::CUuuid uuid{};
  if (functions.cuDeviceGetName != nullptr) {
    cuda::check(functions, functions.cuDeviceGetName(name.data(), static_cast<int>(name.size() - 1), device),
                "cuDeviceGetName");
  }
  cuda::check(functions, functions.cuDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size() - 1), device),
              "cuDeviceGetPCIBusId");
  cuda::check(functions, functions.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
  py::dict dict;
  dict["device"] = std::string(name.data());
  dict["uuid"] = hexadecimal(uuid);
  dict["bus_id"] = std::string(bus_id.data());
  dict["driver"] = runtime.driver().version();
  return dict;
}

py::tuple link_at(const std::string& bus_id) {
  const LinkFacts link = read_link("/sys/bus/pci/devices", bus_id).value_or(LinkFacts{});
  return py::make_tuple(link.gigatransfers_per_s, link.lanes, memory_node_of(bus_id).value_or(-1));
}

int device_count() {
  const cuda::Functions& functions = transfers().runtime().functions();
  int count = 0;
  cuda::check(functions, functions.cuDeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

py::dict measure_link(int device) {
  LinkMeasurements found;
  {
    const GilReleased released(true);
    found = transfers().measure_link(device);
  }
  py::list small;
  for (const SmallCopy& one : found.small) {
    small.append(py::make_tuple(one.nbytes, one.seconds_by_store, one.seconds_by_copy));
  }
  py::list pitched;
  for (const PitchedCopy& one : found.pitched) pitched.append(py::make_tuple(one.width_nbytes, one.efficiency));
  py::dict dict;
  dict["to_host_nbytes_per_s"] = found.to_host_nbytes_per_s;
  dict["to_device_nbytes_per_s"] = found.to_device_nbytes_per_s;
  dict["small"] = small;
  dict["pitched"] = pitched;
  dict["seconds"] = found.seconds;
  dict["steps"] = found.steps;
  return dict;
}

}  // namespace

void register_link(py::module_& module) {
  module.def("cuda_device_count", &device_count, "How many CUDA devices there are; initialises the driver.");
  module.def("link_identity", &link_identity, py::arg("device"),
             "The name, UUID and PCI address of a device, and the CUDA version of its driver.");
  module.def("link_at", &link_at, py::arg("bus_id"),
             "GT/s, lanes and memory node of what is at a PCI address; 0, 0 and -1 where the system does not tell.");
  module.def("measure_link", &measure_link, py::arg("device"),
             "How fast the link is, measured in at most 200 ms; 0 for what was not. Blocks, without the GIL.");
  module.def("link_figures", &link_figures, py::arg("device"),
             "The figures that paths of a device are chosen by; the defaults before its first use, and of None.");
  module.def(
      "figures_for_rate",
      [](double nbytes_per_s) { return as_dict(figures_for_rate(nbytes_per_s, FiguresFrom::calibrated)); },
      py::arg("nbytes_per_s"), "Figures in proportion to a rate.");
  module.def(
      "rate_of_link",
      [](double gigatransfers_per_s, int lanes) {
        const LinkFigures figures = figures_for(LinkFacts{gigatransfers_per_s, lanes});
        return figures.from == FiguresFrom::link ? figures.nbytes_per_s : 0;
      },
      py::arg("gigatransfers_per_s"), py::arg("lanes"),
      "Bytes per second to the host of a link like this; 0 where that is not known.");
}

}  // namespace ferry::bind
