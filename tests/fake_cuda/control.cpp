// What tests call, by C name. Everything else of the fake is reached as a real driver is, through cuGetProcAddress.
#include <cstring>
#include <map>
#include <string>

#include "device_memory.hpp"
#include "kernel_run.hpp"
#include "symbols.hpp"
#include "world.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace fake;

EXPORT void fake_reset() {
  World& w = world();
  Lock lock(w.mutex);
  w.reset(lock);
  kernel_mistakes() = {};
}

EXPORT int fake_schedule(const char* kind, std::uint64_t seed) {
  static const std::map<std::string, Schedule> kinds{{"lazy", Schedule::lazy},
                                                     {"eager", Schedule::eager},
                                                     {"shuffled", Schedule::shuffled},
                                                     {"threaded", Schedule::threaded}};
  const auto found = kinds.find(kind);
  if (found == kinds.end()) return 0;
  World& w = world();
  Lock lock(w.mutex);
  w.engine.set_schedule(found->second, seed, lock);
  return 1;
}

EXPORT std::size_t fake_trace(char* out, std::size_t size) {
  World& w = world();
  Lock lock(w.mutex);
  return give_lines(w.report.trace, out, size);
}

EXPORT void fake_clear_trace() {
  World& w = world();
  Lock lock(w.mutex);
  w.report.trace.clear();
  w.report.requests.clear();
  w.report.counts.clear();
}

EXPORT std::size_t fake_requests(char* out, std::size_t size) {
  World& w = world();
  Lock lock(w.mutex);
  return give_lines(w.report.requests, out, size);
}

EXPORT std::size_t fake_symbols(char* out, std::size_t size) {
  std::vector<std::string> lines;
  for (const Symbol& symbol : symbols()) lines.push_back(text(symbol.name, " ", symbol.version));
  return give_lines(lines, out, size);
}

EXPORT std::size_t fake_violations(char* out, std::size_t size) {
  World& w = world();
  Lock lock(w.mutex);
  w.arena.collect_touches(w.report);
  w.look_for_unmapped();
  return give_lines(w.report.violations, out, size);
}

EXPORT void fake_clear_violations() {
  World& w = world();
  Lock lock(w.mutex);
  w.arena.collect_touches(w.report);
  w.report.violations.clear();
}

EXPORT std::int64_t fake_live(const char* what) {
  World& w = world();
  Lock lock(w.mutex);
  const std::string asked = what;
  std::int64_t count = 0;
  if (asked == "device_bytes") return w.arena.live_bytes();
  if (asked == "host_registrations") return static_cast<std::int64_t>(w.host.all().size());
  if (asked == "host_bytes") return static_cast<std::int64_t>(w.host.locked_bytes());
  if (asked == "events") return static_cast<std::int64_t>(w.events.live().size());
  if (asked == "streams") {
    for (const Stream stream : w.streams.live()) count += stream->created;
    return count;
  }
  if (asked == "primary_contexts") {
    for (const auto& context : w.primary) count += context.alive();
    return count;
  }
  if (asked == "pushed_contexts") return w.pushed;
  if (asked == "pending") return w.engine.pending();
  if (asked == "captures") return w.captures.live();
  if (asked == "graphs") return static_cast<std::int64_t>(w.graphs.live().size());
  if (asked == "graph_execs") return static_cast<std::int64_t>(w.execs.live().size());
  if (asked == "user_objects") return w.user_objects.live();
  const auto found = w.report.counts.find(asked);
  return found == w.report.counts.end() ? 0 : found->second;
}

EXPORT std::uint64_t fake_order() {
  World& w = world();
  Lock lock(w.mutex);
  return w.engine.order_seen();
}

EXPORT void fake_fault(const char* call, std::int64_t nth, int code, int after_acceptance) {
  World& w = world();
  Lock lock(w.mutex);
  w.faults.add(call, nth, code, after_acceptance != 0);
}

EXPORT void fake_clear_faults() {
  World& w = world();
  Lock lock(w.mutex);
  w.faults.clear();
}

EXPORT int fake_preset(const char* name) {
  World& w = world();
  Lock lock(w.mutex);
  const std::string given = name;
  if (given.starts_with("without:")) {
    w.settings.missing.insert(given.substr(8));
    return 1;
  }
  return w.settings.apply(given) ? 1 : 0;
}

EXPORT void fake_host_budget(std::uint64_t nbytes) {
  World& w = world();
  Lock lock(w.mutex);
  w.settings.host_budget = nbytes;
}

EXPORT void fake_hold(int held) {
  World& w = world();
  Lock lock(w.mutex);
  w.engine.hold(held != 0, lock);
}

EXPORT int fake_caller_is_test(int is_test) {
  const int before = caller_is_test();
  caller_is_test() = is_test != 0;
  return before;
}
