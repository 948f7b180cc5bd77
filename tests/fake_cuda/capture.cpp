#include "capture.hpp"

#include <algorithm>
#include <array>

#include "world.hpp"

namespace fake {

void Captures::begin(Stream origin, int mode, u64 thread, Graph graph) {
  auto made = std::make_unique<Capture>();
  made->id = ++last_;
  made->mode = mode;
  made->thread = thread;
  made->origin = origin;
  made->name = origin->name;
  made->graph = graph;
  graph->capturing = true;
  join(*made, origin);
  ongoing_.push_back(std::move(made));
}

void Captures::join(Capture& capture, Stream stream) {
  capture.streams.push_back(stream);
  stream->capture = &capture;
  stream->dependencies.clear();
}

void Captures::leave(Capture& capture, Stream stream) {
  std::erase(capture.streams, stream);
  stream->capture = nullptr;
  stream->dependencies.clear();
}

void Captures::end(Capture& capture, const std::string& how) {
  ended_.push_back(text(describe(capture), " ", how));
  const auto streams = capture.streams;
  for (Stream stream : streams) leave(capture, stream);
  capture.graph->capturing = false;
  std::erase_if(ongoing_, [&](const auto& one) { return one.get() == &capture; });
}

void Captures::invalidate(Capture& capture) {
  if (capture.invalidated) return;
  capture.invalidated = true;
  capture.culprit = (from_product() ? "" : "test: ") + current_call();
  if (from_product()) report_.violation(text(current_call(), " invalidated the capture of ", capture.name));
}

Capture* Captures::find(u64 id) const {
  for (const auto& one : ongoing_) {
    if (one->id == id) return one.get();
  }
  return nullptr;
}

bool Captures::blocks_legacy(Context context) const {
  return std::ranges::any_of(ongoing_, [&](const auto& one) {
    return std::ranges::any_of(one->streams, [&](Stream s) { return s->blocking && s->context == context; });
  });
}

Result Captures::admit(Stream stream) {
  if (stream->capture != nullptr) return stream->capture->invalidated ? capture_invalidated : success;
  if (!stream->is_legacy || !blocks_legacy(stream->context)) return success;
  for (const auto& one : ongoing_) {
    for (Stream other : one->streams) {
      if (other->blocking && other->context == stream->context) invalidate(*one);
    }
  }
  return capture_implicit;
}

Result Captures::admit_question(Stream stream) {
  if (const Result refused = admit(stream); refused != success) return refused;
  if (stream->capture == nullptr) return success;
  invalidate(*stream->capture);
  return capture_unsupported;
}

Result Captures::refuse_unsafe(u64 thread, int mode) {
  if (mode == capture_relaxed) return success;
  Result answer = success;
  for (const auto& one : ongoing_) {
    const bool minds =
        one->thread == thread ? one->mode != capture_relaxed : one->mode == capture_global && mode == capture_global;
    if (!minds) continue;
    invalidate(*one);
    answer = capture_unsupported;
  }
  return answer;
}

Result Captures::refuse_in(const std::vector<Context>& contexts) {
  Result answer = success;
  for (const auto& one : ongoing_) {
    const auto is_in = [&](Stream stream) { return std::ranges::count(contexts, stream->context) > 0; };
    if (std::ranges::none_of(one->streams, is_in)) continue;
    invalidate(*one);
    answer = capture_unsupported;
  }
  return answer;
}

std::vector<Graph> Captures::end_in(u64 context_id) {
  std::vector<Capture*> dying;
  for (const auto& one : ongoing_) {
    const auto is_in = [&](Stream stream) { return stream->context_id == context_id; };
    if (std::ranges::any_of(one->streams, is_in)) dying.push_back(one.get());
  }
  std::vector<Graph> graphs;
  for (Capture* one : dying) {
    graphs.push_back(one->graph);
    invalidate(*one);
    end(*one, "ended with its context");
  }
  return graphs;
}

std::string Captures::describe(const Capture& capture) {
  const std::array modes{"global", "thread_local", "relaxed"};
  const std::string state = capture.invalidated ? " invalidated by " + capture.culprit + "," : "";
  return text(capture.name, " ", modes[static_cast<std::size_t>(capture.mode)], state);
}

std::vector<std::string> Captures::lines() const {
  std::vector<std::string> all = ended_;
  for (const auto& one : ongoing_) all.push_back(text(describe(*one), " ongoing"));
  return all;
}

void Captures::reset() {
  ongoing_.clear();
  ended_.clear();
}

Result begin_capture(World& w, Stream handle, int mode) {
  Stream origin = nullptr;
  if (mode < capture_global || mode > capture_relaxed) return invalid_value;
  if (const Result failed = w.identify(handle, origin); failed != success) return failed;
  if (origin->is_legacy) return capture_unsupported;
  if (origin->capture != nullptr) return illegal_state;
  w.captures.begin(origin, mode, w.thread().number, make_graph(w));
  return success;
}

Result end_capture(World& w, Stream handle, Graph* graph) {
  Stream at = nullptr;
  if (graph == nullptr) return invalid_value;
  if (const Result failed = w.identify(handle, at); failed != success) return failed;
  if (at->capture == nullptr) return illegal_state;
  Capture& capture = *at->capture;
  const bool wrong_thread = capture.mode != capture_relaxed && capture.thread != w.thread().number;
  if (capture.origin != at || wrong_thread) {
    if (!w.settings.wrong_ends_spare) w.captures.invalidate(capture);
    return capture.origin != at ? capture_unmatched : capture_wrong_thread;
  }
  const bool unjoined = capture.graph->body->count_outside(at->dependencies) > 0;
  const Result answer = capture.invalidated ? capture_invalidated : unjoined ? capture_unjoined : success;
  const Graph made = capture.graph;
  w.captures.end(capture, answer == capture_unjoined ? "ended unjoined" : "ended");
  *graph = answer == success ? made : nullptr;
  if (answer != success) destroy_graph(w, made);
  return answer;
}

}  // namespace fake
