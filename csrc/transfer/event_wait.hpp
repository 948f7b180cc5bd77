// Waiting for events as everything here does it.
#pragma once

#include "cuda/event.hpp"

namespace ferry {

// Asks the driver, never waits. Throws Error: when that work, or earlier work on the device, failed, and when the
// device was reset since.
[[nodiscard]] bool is_done(const cuda::Functions& functions, const cuda::Event& event);

// Asks for some microseconds, then lets the driver block the host, or where waits are interruptible, asks with growing
// pauses; hold no lock, and not the GIL. Only for EventUse::waiting. Throws Error, and Interrupted.
void wait_for(const cuda::Functions& functions, const cuda::Event& event);

}  // namespace ferry
