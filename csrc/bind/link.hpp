// What the Python layer knows of links: figures of an earlier calibration.
#pragma once

#include <optional>

#include "transfer/link_figures.hpp"

namespace ferry::bind {

// What tensorferry._device.link has for this device. Takes the GIL for that; never throws.
[[nodiscard]] std::optional<LinkFigures> stored_figures(int device);

}  // namespace ferry::bind
