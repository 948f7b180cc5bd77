// Events stand for the work that a stream had at the last record.
#include <algorithm>

#include "api.hpp"
#include "call.hpp"
#include "event_order.hpp"

namespace fake {
namespace {

auto describe(Event event) {
  return [event](World& w) { return text(" ", w.name_of(event)); };
}

Result record(World& w, Event event, Stream stream, unsigned flags, Lock& lock) {
  Stream at = nullptr;
  Event into = nullptr;
  if (const Result failed = w.resolve(stream, at); failed != success) return failed;
  if (const Result failed = w.resolve(event, into); failed != success) return failed;
  return record_event(w, into, at, flags, lock);
}

}  // namespace

Result cuEventCreate(Event* event, unsigned flags) {
  return call(
      "cuEventCreate", Needs::context, [&](World&) { return text(" flags=", flags); },
      [&](World& w, Lock&) {
        if (event == nullptr || (flags & ~event_known_flags) != 0) return invalid_value;
        Event made = w.events.add(w.settings.handles_recur);
        made->number = ++w.last_event;
        made->context = w.current();
        made->context_id = made->context->id;
        made->flags = flags;
        *event = made;
        return success;
      });
}

Result cuEventDestroy(Event event) {
  return call("cuEventDestroy", Needs::health, describe(event), [&](World& w, Lock&) {
    Event found = nullptr;
    if (const Result failed = w.resolve(event, found); failed != success) return failed;
    w.events.remove(found);
    return success;
  });
}

Result cuEventRecord(Event event, Stream stream) {
  const auto arguments = [&](World& w) { return text(" event=", w.name_of(event), " stream=", w.name_of(stream)); };
  return call("cuEventRecord", Needs::context, arguments,
              [&](World& w, Lock& lock) { return record(w, event, stream, 0, lock); });
}

Result cuEventRecordWithFlags(Event event, Stream stream, unsigned flags) {
  const auto arguments = [&](World& w) {
    return text(" event=", w.name_of(event), " stream=", w.name_of(stream), " flags=", flags);
  };
  return call("cuEventRecordWithFlags", Needs::context, arguments,
              [&](World& w, Lock& lock) { return record(w, event, stream, flags, lock); });
}

Result cuCtxRecordEvent(Context context, Event event) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of(context), " event=", w.name_of(event)); };
  return call("cuCtxRecordEvent", Needs::context, arguments, [&](World& w, Lock& lock) {
    Event into = nullptr;
    if (!w.knows(context)) return invalid_context;
    if (const Result failed = w.resolve(event, into); failed != success) return failed;
    if (!w.may_share_events(into->context, context)) return invalid_handle;
    const auto taken_in = w.with_green(context);
    if (const Result refused = w.captures.refuse_in(taken_in); refused != success) return refused;
    Operation operation;
    operation.name = "record " + into->name();
    operation.context_id = context->id;
    for (Stream stream : w.streams.live()) {
      if (std::ranges::count(taken_in, stream->context) > 0) operation.after.push_back(stream->last);
    }
    into->capture = 0;
    into->nodes.clear();
    into->captured = w.engine.enqueue(std::move(operation), lock);
    into->put_off = 0;
    return success;
  });
}

Result cuEventQuery(Event event) {
  return call("cuEventQuery", Needs::init, describe(event), [&](World& w, Lock& lock) {
    Event at = nullptr;
    if (const Result failed = w.resolve(event, at); failed != success) return failed;
    if (at->context->error != success) return at->context->error;
    if (const Result refused = admit_event_question(w, *at); refused != success) return refused;
    if (w.settings.forgets_host_waits) return success;
    ++w.report.counts["queries"];
    if (!w.engine.is_done(at->captured)) {
      if (w.engine.held() || at->put_off++ < w.settings.not_ready_answers) {
        const Context asked = at->context;
        w.engine.show_a_part(at->captured, lock);
        return asked->error != success ? asked->error : not_ready;
      }
      if (w.engine.schedule() == Schedule::threaded) return not_ready;
    }
    const Context context = at->context;
    w.engine.finish(at->captured, lock);
    return context->error;
  });
}

Result cuEventSynchronize(Event event) {
  return call("cuEventSynchronize", Needs::init, describe(event), [&](World& w, Lock& lock) {
    Event at = nullptr;
    if (const Result failed = w.resolve(event, at); failed != success) return failed;
    if (at->context->error != success) return at->context->error;
    if (const Result refused = admit_event_question(w, *at); refused != success) return refused;
    if (w.settings.forgets_host_waits) return success;
    ++w.report.counts[(at->flags & event_blocking_sync) != 0 ? "blocking_waits" : "busy_waits"];
    const Context context = at->context;
    w.engine.finish(at->captured, lock);
    return context->error;
  });
}

Result cuEventElapsedTime(float* milliseconds, Event start, Event end) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of(start), " ", w.name_of(end)); };
  return call("cuEventElapsedTime", Needs::init, arguments, [&](World& w, Lock&) {
    Event from = nullptr, to = nullptr;
    if (milliseconds == nullptr) return invalid_value;
    if (const Result failed = w.resolve(start, from); failed != success) return failed;
    if (const Result failed = w.resolve(end, to); failed != success) return failed;
    if (from->context != to->context || ((from->flags | to->flags) & event_disable_timing) != 0) return invalid_handle;
    if (from->capture != 0 || to->capture != 0) return captured_event;
    if (from->captured == 0 || to->captured == 0) return invalid_handle;
    if (!w.engine.is_done(from->captured) || !w.engine.is_done(to->captured)) return not_ready;
    *milliseconds = static_cast<float>(to->captured) - static_cast<float>(from->captured);
    return success;
  });
}

}  // namespace fake
