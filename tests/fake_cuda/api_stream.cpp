// Streams: created ones, the legacy one, and one for each thread.
#include "api.hpp"
#include "call.hpp"
#include "event_order.hpp"

namespace fake {
namespace {

Result make(World& w, Stream* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~stream_non_blocking) != 0) return invalid_value;
  Stream made = w.streams.add(w.settings.handles_recur);
  made->number = ++w.last_stream;
  made->name = text("stream#", made->number);
  made->context = w.current();
  made->context_id = made->context->id;
  made->blocking = (flags & stream_non_blocking) == 0;
  made->flags = flags;
  made->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
  made->created = true;
  *stream = made;
  return success;
}

/// A stream of a capture goes: the capture cannot be joined any more, and without its origin it cannot be ended.
void abandon_capture(World& w, Stream stream) {
  Capture& capture = *stream->capture;
  w.captures.invalidate(capture);
  const Graph graph = capture.graph;
  if (capture.origin != stream) return w.captures.leave(capture, stream);
  w.captures.end(capture, "ended with its stream");
  destroy_graph(w, graph);
}

/// Find a stream that is to be queried or waited for.
Result may_ask(World& w, Stream handle, Stream& stream) {
  if (const Result failed = w.identify(handle, stream); failed != success) return failed;
  if (const Result refused = w.captures.admit_question(stream); refused != success) return refused;
  return w.captures.refuse_unsafe(w.thread().number, w.thread().capture_mode);
}

auto describe(Stream stream) {
  return [stream](World& w) { return text(" ", w.name_of(stream)); };
}

bool is_special(Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= per_thread_handle; }

}  // namespace

Result cuStreamCreate(Stream* stream, unsigned flags) {
  return call(
      "cuStreamCreate", Needs::context, [&](World&) { return text(" flags=", flags); },
      [&](World& w, Lock&) { return make(w, stream, flags, 0); });
}

Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority) {
  const auto arguments = [&](World&) { return text(" flags=", flags, " priority=", priority); };
  return call("cuStreamCreateWithPriority", Needs::context, arguments,
              [&](World& w, Lock&) { return make(w, stream, flags, priority); });
}

Result cuStreamDestroy(Stream stream) {
  return call("cuStreamDestroy", Needs::health, describe(stream), [&](World& w, Lock&) {
    Stream found = nullptr;
    if (is_special(stream)) return invalid_handle;
    if (const Result failed = w.identify(stream, found); failed != success) return failed;
    if (found->capture != nullptr) abandon_capture(w, found);
    w.streams.remove(found);  // pending work goes on: it knows its predecessors by number
    return success;
  });
}

Result cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  const auto arguments = [&](World& w) { return text(" stream=", w.name_of(stream), " event=", w.name_of(event)); };
  return call("cuStreamWaitEvent", Needs::context, arguments, [&](World& w, Lock& lock) {
    Stream at = nullptr;
    Event on = nullptr;
    if (const Result failed = w.resolve(stream, at); failed != success) return failed;
    if (const Result failed = w.resolve(event, on); failed != success) return failed;
    if (w.settings.forgets_stream_waits) return success;
    return wait_for_event(w, at, *on, flags, lock);
  });
}

Result cuStreamQuery(Stream stream) {
  return call("cuStreamQuery", Needs::context, describe(stream), [&](World& w, Lock& lock) {
    Stream at = nullptr;
    if (const Result failed = may_ask(w, stream, at); failed != success) return failed;
    ++w.report.counts["queries"];
    bool done = true;
    for (const u64 id : w.tail_of(at)) done = done && w.engine.is_done(id);
    if (!done && (w.engine.held() || at->put_off++ < w.settings.not_ready_answers)) {
      w.engine.show_a_part(at->last, lock);
      return at->context->error != success ? at->context->error : not_ready;
    }
    if (!done && w.engine.schedule() == Schedule::threaded) return not_ready;
    at->put_off = 0;
    for (const u64 id : w.tail_of(at)) w.engine.finish(id, lock);
    return at->context->error;
  });
}

Result cuStreamSynchronize(Stream stream) {
  return call("cuStreamSynchronize", Needs::context, describe(stream), [&](World& w, Lock& lock) {
    Stream at = nullptr;
    if (const Result failed = may_ask(w, stream, at); failed != success) return failed;
    ++w.report.counts["busy_waits"];
    const Context context = at->context;
    for (const u64 id : w.tail_of(at)) w.engine.finish(id, lock);
    return context->error;
  });
}

Result cuStreamGetCtx(Stream stream, Context* context) {
  return call("cuStreamGetCtx", Needs::init, describe(stream), [&](World& w, Lock&) {
    Stream at = nullptr;
    if (context == nullptr) return invalid_value;
    if (const Result failed = w.identify(stream, at); failed != success) return failed;
    *context = at->context;
    return success;
  });
}

Result cuStreamGetPriority(Stream stream, int* priority) {
  return call("cuStreamGetPriority", Needs::init, describe(stream), [&](World& w, Lock&) {
    Stream at = nullptr;
    if (priority == nullptr) return invalid_value;
    if (const Result failed = w.identify(stream, at); failed != success) return failed;
    *priority = at->priority;
    return success;
  });
}

Result cuStreamGetFlags(Stream stream, unsigned* flags) {
  return call("cuStreamGetFlags", Needs::init, describe(stream), [&](World& w, Lock&) {
    Stream at = nullptr;
    if (flags == nullptr) return invalid_value;
    if (const Result failed = w.identify(stream, at); failed != success) return failed;
    *flags = at->flags;
    return success;
  });
}

}  // namespace fake
