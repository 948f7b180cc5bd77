// How a tensor on a device is cut so that each part passes through one piece of pinned memory: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/layout.hpp"
#include "transfer/moves.hpp"

namespace ferry {

struct RingChunk {
  std::int64_t device_offset = 0;  // of its first element, from the tensor's data pointer
  std::int64_t host_offset = 0;
  Layout device;   // the part's layout in device memory
  Layout host;     // and in the host tensor
  Layout landing;  // its layout in the piece, whose first byte it begins with; repeated elements are there once
  std::int64_t landing_nbytes = 0;
  std::vector<Move> moves;  // between the device's data pointer of the part, and the piece's first byte
};

enum class RingWay : std::uint8_t { to_host, to_device };

// The parts come in the order of device memory. `host` has the same shape, and item size of its own. To the host,
// elements that lie close together may come with the holes between them. A move's source is the device for `to_host`,
// else the piece. Nothing when it would take too many moves.
[[nodiscard]] std::optional<std::vector<RingChunk>> ring_chunks(const Layout& device, const Layout& host,
                                                                std::int64_t most_nbytes, RingWay way);

}  // namespace ferry
