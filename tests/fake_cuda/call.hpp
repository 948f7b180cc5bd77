// What every function of the driver goes through: trace, faults, state of the driver and of the current context.
#pragma once

#include <unistd.h>

#include <string>

#include "world.hpp"

namespace fake {

/// What a call needs before it may do anything.
enum class Needs {
  nothing,  ///< works before cuInit
  init,     ///< the driver, but no healthy context
  health,   ///< no error that sticks in the current context
  context,  ///< a current context, alive and healthy
};

template <class Describe, class Body>
Result call(const char* name, Needs needs, Describe describe, Body body) {
  World& w = world();
  Lock lock(w.mutex);
  w.arena.collect_touches(w.report);
  current_call() = std::string(name) + describe(w);
  w.report.trace.push_back((from_product() ? "" : "test: ") + current_call());
  if (needs != Needs::nothing && w.owner != 0 && w.owner != getpid()) return not_initialized;  // after a fork
  if (in_destructor()) {
    w.report.violation(text(name, " was called in the destructor of a user object"));
    return not_permitted;
  }
  const Result failed = from_product() ? w.faults.before(name) : success;
  const Context context = w.current();
  if (failed != success) {
    if (is_sticky(failed) && context != nullptr) w.fail(context, failed, lock);
    return failed;
  }
  if (needs == Needs::nothing) return body(w, lock);
  if (!w.initialized) return not_initialized;
  if (needs == Needs::context && context == nullptr) return invalid_context;
  if (needs == Needs::context && !context->alive()) return context_is_destroyed;
  w.engine.progress(lock);
  if (needs >= Needs::health && context != nullptr && context->error != success) return context->error;
  const Result result = body(w, lock);
  const Result afterwards = from_product() && result == success ? w.faults.after() : success;
  if (is_sticky(afterwards) && context != nullptr) w.fail(context, afterwards, lock);
  return afterwards != success ? afterwards : result;
}

/// For what is potentially unsafe during a capture: a thread may do it by its mode, or destroys captures.
template <class Describe, class Body>
Result unsafe_call(const char* name, Needs needs, Describe describe, Body body) {
  return call(name, needs, describe, [&](World& w, Lock& lock) -> Result {
    const ThreadState& thread = w.thread();
    if (const Result refused = w.captures.refuse_unsafe(thread.number, thread.capture_mode); refused) return refused;
    return body(w, lock);
  });
}

inline auto no_arguments = [](World&) { return std::string(); };

}  // namespace fake
