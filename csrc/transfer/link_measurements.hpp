// What a short measurement tells of the link to a device.
#pragma once

#include <cstdint>
#include <vector>

namespace ferry {

// How long the host waits for so many bytes of device memory to be in pinned memory.
struct SmallCopy {
  std::int64_t nbytes = 0;
  double seconds_by_store = 0;  // by a kernel of ours
  double seconds_by_copy = 0;   // by the driver
};

// Rows of this width at twice their width go at this part of the rate of one block.
struct PitchedCopy {
  std::int64_t width_nbytes = 0;
  double efficiency = 0;
};

// What was not measured, because the time was up or there are no kernels, is 0 or absent.
struct LinkMeasurements {
  double to_host_nbytes_per_s = 0;
  double to_device_nbytes_per_s = 0;
  std::vector<SmallCopy> small;
  std::vector<PitchedCopy> pitched;
  double seconds = 0;  // all steps together
  int steps = 0;
};

}  // namespace ferry
