// Captures and graphs as a framework uses them, in the name of the test and on the calling thread.
#include "capture.hpp"
#include "framework.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace fake;

/// `mode` is 0 for global, as torch.cuda.graph does by default, 1 for thread local, 2 for relaxed.
EXPORT int fake_begin_capture(void* stream, int mode, int device) {
  World& w = world();
  Lock lock(w.mutex);
  const AsFramework framework(w, device, "a framework's capture");
  return begin_capture(w, static_cast<Stream>(stream), mode);
}

/// The graph is instantiated, too, ready to be launched; null if the capture failed.
EXPORT int fake_end_capture(void* stream, int device, void** graph) {
  World& w = world();
  Lock lock(w.mutex);
  const AsFramework framework(w, device, "a framework's capture");
  Graph made = nullptr;
  const Result answer = end_capture(w, static_cast<Stream>(stream), &made);
  if (answer == success) instantiate_graph(w, made, &made->of_framework);
  if (graph != nullptr) *graph = made;
  return answer;
}

EXPORT int fake_launch_graph(void* graph, void* stream, int device) {
  World& w = world();
  Lock lock(w.mutex);
  const AsFramework framework(w, device, "a framework's replay");
  Stream at = nullptr;
  if (!w.graphs.knows(static_cast<Graph>(graph))) return invalid_value;
  if (const Result failed = w.resolve(static_cast<Stream>(stream), at); failed != success) return failed;
  return launch_graph(w, static_cast<Graph>(graph)->of_framework, at, lock);
}

EXPORT int fake_destroy_graph(void* graph) {
  World& w = world();
  Lock lock(w.mutex);
  return destroy_graph(w, static_cast<Graph>(graph));
}

/// One line for each capture since the last reset: its stream, mode, who invalidated it, and whether it has ended.
EXPORT std::size_t fake_captures(char* out, std::size_t size) {
  World& w = world();
  Lock lock(w.mutex);
  return give_lines(w.captures.lines(), out, size);
}

/// A green context of the device, active from now on, as another library may have made it.
EXPORT void* fake_green_context(int device) {
  World& w = world();
  Lock lock(w.mutex);
  framework_context(w, device);
  return &w.green_context(device);
}
