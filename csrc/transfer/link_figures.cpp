#include "transfer/link_figures.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace ferry {
namespace {

constexpr double seconds_of_stores_when_waiting = 5e-6;
constexpr double seconds_of_stores_when_not = 1.25e-6;

// What one lane brings to the host, headers and encoding taken off, by the generation's speed.
struct Generation {
  double gigatransfers_per_s;
  double nbytes_per_s;
};
constexpr std::array<Generation, 6> generations{
    {{2.5, 0.2e9}, {5, 0.4e9}, {8, 0.78e9}, {16, 1.5625e9}, {32, 3.25e9}, {64, 6.5e9}}};

// "16.0 GT/s PCIe" or "16": the number in front. 0 where there is none.
double number_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number && number > 0 ? number : 0;
}

}  // namespace

std::optional<LinkFacts> read_link(const std::string& directory, std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  std::error_code error;
  const auto device = std::filesystem::canonical(std::filesystem::path(directory) / bus_id, error);
  if (error) return std::nullopt;
  LinkFacts link;
  link.gigatransfers_per_s = number_in(device / "max_link_speed");
  const double of_slot = number_in(device.parent_path() / "max_link_speed");
  if (of_slot > 0) link.gigatransfers_per_s = std::min(link.gigatransfers_per_s, of_slot);
  link.lanes = static_cast<int>(number_in(device / "current_link_width"));
  if (link.lanes == 0) link.lanes = static_cast<int>(number_in(device / "max_link_width"));
  if (link.gigatransfers_per_s <= 0 || link.lanes <= 0) return std::nullopt;
  return link;
}

LinkFigures figures_for(const std::optional<LinkFacts>& link) {
  if (!link) return {};
  const auto above = std::find_if(generations.begin(), generations.end(), [&](const Generation& known) {
    return known.gigatransfers_per_s > link->gigatransfers_per_s;
  });
  if (above == generations.begin() || link->lanes <= 0) return {};
  return figures_for_rate(std::prev(above)->nbytes_per_s * link->lanes, FiguresFrom::link);
}

LinkFigures figures_for_rate(double nbytes_per_s, FiguresFrom from) {
  LinkFigures figures;
  figures.from = from;
  figures.nbytes_per_s = nbytes_per_s;
  figures.stores_when_waiting = static_cast<std::int64_t>(seconds_of_stores_when_waiting * nbytes_per_s);
  figures.stores_when_not = static_cast<std::int64_t>(seconds_of_stores_when_not * nbytes_per_s);
  return figures;
}

LinkFigures link_of(const cuda::Functions& functions, int device) {
  std::array<char, 32> bus_id{};
  if (functions.cuDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), device) != cuda::success) return {};
  return figures_for(read_link("/sys/bus/pci/devices", bus_id.data()));
}

}  // namespace ferry
