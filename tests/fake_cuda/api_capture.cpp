// Captures of streams.
#include "api.hpp"
#include "call.hpp"
#include "capture.hpp"

namespace fake {
namespace {

auto describe_capture(Stream stream) {
  return [stream](World& w) { return text(" ", w.name_of(stream)); };
}

int status_of(Stream stream) { return stream->capture == nullptr ? 0 : stream->capture->invalidated ? 2 : 1; }

/// A question that invalidates nothing.
Result find_to_ask(World& w, Stream handle, Stream& stream) {
  if (const Result failed = w.identify(handle, stream); failed != success) return failed;
  return stream->is_legacy && w.captures.blocks_legacy(stream->context) ? capture_implicit : success;
}

}  // namespace

Result cuStreamBeginCapture(Stream stream, int mode) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of(stream), " mode=", mode); };
  return call("cuStreamBeginCapture", Needs::context, arguments,
              [&](World& w, Lock&) { return begin_capture(w, stream, mode); });
}

Result cuStreamEndCapture(Stream stream, Graph* graph) {
  return call("cuStreamEndCapture", Needs::context, describe_capture(stream),
              [&](World& w, Lock&) { return end_capture(w, stream, graph); });
}

Result cuStreamIsCapturing(Stream stream, int* status) {
  return call("cuStreamIsCapturing", Needs::context, describe_capture(stream), [&](World& w, Lock&) {
    Stream at = nullptr;
    if (status == nullptr) return invalid_value;
    if (const Result failed = find_to_ask(w, stream, at); failed != success) return failed;
    *status = status_of(at);
    return success;
  });
}

Result cuStreamGetCaptureInfo(Stream stream, int* status, u64* id, Graph* graph, const GraphNode** dependencies,
                              std::size_t* count) {
  return call("cuStreamGetCaptureInfo", Needs::context, describe_capture(stream), [&](World& w, Lock&) {
    Stream at = nullptr;
    if (status == nullptr) return invalid_value;
    if (const Result failed = find_to_ask(w, stream, at); failed != success) return failed;
    *status = status_of(at);
    const bool active = *status == 1;  // only then the rest is valid
    if (id != nullptr) *id = active ? at->capture->id : 0;
    if (graph != nullptr) *graph = active ? at->capture->graph : nullptr;
    const std::size_t n = active ? at->dependencies.size() : 0;
    if (dependencies != nullptr) *dependencies = n > 0 ? at->dependencies.data() : nullptr;
    if (count != nullptr) *count = n;
    return success;
  });
}

Result cuThreadExchangeStreamCaptureMode(int* mode) {
  const auto arguments = [&](World&) { return mode == nullptr ? std::string() : text(" ", *mode); };
  return call("cuThreadExchangeStreamCaptureMode", Needs::init, arguments, [&](World& w, Lock&) {
    if (mode == nullptr || *mode < capture_global || *mode > capture_relaxed) return invalid_value;
    std::swap(*mode, w.thread().capture_mode);
    return success;
  });
}

}  // namespace fake
