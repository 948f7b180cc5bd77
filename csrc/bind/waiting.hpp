// Calls that wait for a device: without the GIL, and so that Ctrl-C ends them.
#pragma once

#include "bind/gil.hpp"
#include "transfer/interruption.hpp"

namespace ferry::bind {

// Runs the handlers of signals that came meanwhile; true when one of them raised, whose error is set then. Null in
// threads where Python runs no handlers.
[[nodiscard]] InterruptibleWaits::Ask ask_of_this_thread() noexcept;

// Throws what the call throws, and PythonErrorSet when a signal ended its wait.
template <class Call>
auto waiting(Call call) {
  try {
    const InterruptibleWaits waits(ask_of_this_thread());
    const GilReleased released(true);
    return call();
  } catch (const Interrupted&) {
    throw PythonErrorSet{};
  }
}

}  // namespace ferry::bind
