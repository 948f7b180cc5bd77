// How fast bytes go between a device and the host, and up to which sizes each way of copying pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cuda/driver_functions.hpp"

namespace ferry {

enum class FiguresFrom : std::uint8_t {
  defaults,    // nothing is known of the link
  link,        // from its speed and width, as the system tells them
  calibrated,  // measured on this machine
};

// Every threshold is in bytes over the link.
struct LinkFigures {
  FiguresFrom from = FiguresFrom::defaults;
  double nbytes_per_s = 25e9;                  // to the host: PCIe 4.0 with 16 lanes
  std::int64_t stores_when_waiting = 125'000;  // up to here a kernel stores into host memory where it runs anyway,
  std::int64_t stores_when_not = 31'250;       // the same where nobody waits, for as long the producer's stream is held
  std::int64_t stores_of_blocks = 16 << 10;    // and up to here where no kernel is needed
  std::int64_t rows_from = 4096;               // rows from here on are copied as they are
  std::int64_t gathers_below = 1 << 20;        // a nest's tensors are gathered below this mean

  bool operator==(const LinkFigures&) const = default;
};

// What the system tells of a PCIe device: speeds in GT/s, widths in lanes. The speed is the highest that both ends can
// do, since an idle link goes slowly; the width is that of the slot.
struct LinkFacts {
  double gigatransfers_per_s = 0;
  int lanes = 0;

  bool operator==(const LinkFacts&) const = default;
};

// Reads them from `directory`, such as /sys/bus/pci/devices; the bus id as the driver gives it. Nothing where the
// system does not tell.
[[nodiscard]] std::optional<LinkFacts> read_link(const std::string& directory, std::string bus_id);

// 25 GB/s for PCIe 4.0 with 16 lanes, 52 GB/s for 5.0; thresholds in proportion.
[[nodiscard]] LinkFigures figures_for(const std::optional<LinkFacts>& link);
// The same for a rate that was measured.
[[nodiscard]] LinkFigures figures_for_rate(double nbytes_per_s, FiguresFrom from);

// What the system tells of the link to this device of the driver's.
[[nodiscard]] LinkFigures link_of(const cuda::Functions& functions, int device);

}  // namespace ferry
