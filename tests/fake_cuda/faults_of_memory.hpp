// The fault handler over the arena: notes the touch, fills the page with poison, lets the program go on.
#pragma once

#include <cstdint>
#include <vector>

namespace fake {

enum class PageState : unsigned char { guard, live, freed };

struct Touch {
  std::uintptr_t address;
  PageState state;
  bool by_device;
  bool quiet;  ///< by a kernel, whose accesses are judged before they happen
};

/// Install the handler; other faults go to whoever was there before.
void watch_memory(std::uintptr_t base, std::size_t size);
/// Again, in case somebody else took its place.
void install_handler();
void set_page_state(std::uintptr_t begin, std::uintptr_t end, PageState state);
/// What happened since the last call.
std::vector<Touch> take_touches();

// Read inside a signal handler, where the usual model of thread-local memory may allocate.
extern thread_local bool running_on_device __attribute__((tls_model("initial-exec")));
extern thread_local bool running_a_kernel __attribute__((tls_model("initial-exec")));
inline bool& quiet_touches() { return running_a_kernel; }

}  // namespace fake
