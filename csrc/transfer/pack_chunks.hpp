// How a tensor on a device is cut into parts that kernels pack one after the other: a pure function.
#pragma once

#include <cstdint>
#include <vector>

#include "core/layout.hpp"

namespace ferry {

struct PackChunk {
  std::int64_t device_offset = 0;  // of its first element, from the tensor's data pointer
  std::int64_t host_offset = 0;
  Layout device;            // what is packed of the part, on the device
  Layout packed;            // the same elements, packed, from the first byte of the staging on
  Layout landing;           // the whole part over the packed bytes, with steps of 0 where elements repeat
  Layout host;              // the whole part in the host tensor
  std::int64_t nbytes = 0;  // of `packed`
};

// What is packed of elements that repeat along an axis.
enum class Repeated : std::uint8_t { once, each };

// In the order of host memory, so that parts are neighbours there wherever the layout allows. Both layouts have the
// same shape; an element takes `itemsize` bytes when it is packed. A part has at most `most_nbytes`, or one element.
[[nodiscard]] std::vector<PackChunk> pack_chunks(const Layout& device, const Layout& host, std::int64_t itemsize,
                                                 std::int64_t most_nbytes, Repeated repeated);

// A part on its way to a device, where it is unpacked.
struct UnpackChunk {
  std::int64_t host_offset = 0;
  std::int64_t device_offset = 0;
  Layout host;              // what is packed of the part, in host memory; forwards, and elements that repeat there once
  Layout packed;            // the same elements, packed in that order
  Layout landing;           // the whole part over the packed bytes, with steps of 0 where elements repeat
  Layout device;            // the whole part on the device
  std::int64_t nbytes = 0;  // of `packed`
};

// In the order of host memory, too. Nothing may overlap on the device.
[[nodiscard]] std::vector<UnpackChunk> unpack_chunks(const Layout& host, const Layout& device, std::int64_t itemsize,
                                                     std::int64_t most_nbytes);

}  // namespace ferry
