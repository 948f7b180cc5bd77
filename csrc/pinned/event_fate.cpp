#include "pinned/event_fate.hpp"

#include <exception>

#include "cuda/driver_error.hpp"

namespace ferry {

EventFate fate_of(const cuda::Event& event) noexcept {
  try {
    switch (const cuda::CUresult code = event.query()) {
      case cuda::success:
        return EventFate::done;
      case cuda::result::not_ready:
        return EventFate::pending;
      case cuda::result::captured_event:
        return EventFate::captured;
      case cuda::result::deinitialized:
      case cuda::result::invalid_context:
      case cuda::result::context_is_destroyed:
        return EventFate::lost;
      default:
        return cuda::is_sticky(code) ? EventFate::lost : EventFate::unknown;
    }
  } catch (const std::exception&) {  // captures could not be relaxed
    return EventFate::unknown;
  }
}

}  // namespace ferry
