// Between two tests of one process whose product keeps what it has of the driver: nothing is reset, but old news goes.
#include <map>

#include "world.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace fake;

/// Run all pending work and forget which memory was freed: each operation looks through all that is known.
EXPORT void fake_forget_freed() {
  World& w = world();
  Lock lock(w.mutex);
  w.engine.finish_all(lock);
  w.arena.collect_touches(w.report);
  std::erase_if(w.arena.all(), [](const auto& at) { return at.second.freed && at.second.open == 0; });
}
