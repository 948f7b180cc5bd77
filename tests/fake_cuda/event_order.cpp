#include "event_order.hpp"

#include <algorithm>

#include "capture.hpp"

namespace fake {
namespace {

void add_event_node(World& w, Stream at, Event event, bool records) {
  Operation operation;
  operation.name = text(records ? "record " : "wait for ", event->name());
  w.submit_to_capture(at, std::move(operation));
  GraphNode node = at->dependencies.front();
  node->event = event;
  node->event_number = event->number;
  node->records = records;
}

Result break_isolation(World& w, Capture& capture) {
  w.captures.invalidate(capture);
  return capture_isolation;
}

Result join_by_event(World& w, Stream at, const CUevent_st& event) {
  Capture* const recorded = w.captures.find(event.capture);
  Capture* const waiting = at->capture;
  if (recorded == nullptr || recorded->invalidated) {
    return waiting != nullptr ? break_isolation(w, *waiting) : invalid_value;
  }
  if (waiting != nullptr && waiting != recorded) {
    w.captures.invalidate(*recorded);
    w.captures.invalidate(*waiting);
    return capture_merge;
  }
  if (at->is_legacy) {
    w.captures.invalidate(*recorded);
    return capture_unsupported;
  }
  if (waiting == nullptr) w.captures.join(*recorded, at);
  for (const GraphNode node : event.nodes) {
    if (std::ranges::count(at->dependencies, node) == 0) at->dependencies.push_back(node);
  }
  return success;
}

}  // namespace

Result record_event(World& w, Event event, Stream at, unsigned flags, Lock& lock) {
  if (flags > event_external || (flags != 0 && at->capture == nullptr)) return invalid_value;
  if (!w.may_share_events(event->context, at->context)) {
    w.report.violation(event->name() + " was recorded in a stream of another context");
    return invalid_handle;
  }
  if (flags != 0) {
    add_event_node(w, at, event, true);
    return success;
  }
  event->capture = 0;
  event->nodes.clear();
  event->put_off = 0;
  if (at->capture != nullptr) {
    event->captured = 0;
    event->capture = at->capture->id;
    event->nodes = at->dependencies;
    return success;
  }
  Operation operation;
  operation.name = "record " + event->name();
  event->captured = w.submit(at, std::move(operation), lock);  // earlier waits keep what they captured then
  return success;
}

Result wait_for_event(World& w, Stream at, const CUevent_st& event, unsigned flags, Lock& lock) {
  if (flags > event_external || (flags != 0 && (at->capture == nullptr || event.capture != 0))) return invalid_value;
  if (event.capture != 0) return join_by_event(w, at, event);
  if (flags != 0) {
    add_event_node(w, at, const_cast<Event>(&event), false);
    return success;
  }
  if (at->capture != nullptr) {
    if (event.captured == 0 && w.settings.unrecorded_waits_are_empty) return success;
    return break_isolation(w, *at->capture);
  }
  if (event.captured == 0) return success;
  Operation wait;
  wait.name = "wait for " + event.name();
  wait.after = {event.captured};
  w.submit(at, std::move(wait), lock);
  return success;
}

Result order_streams(World& w, Stream later, Stream earlier, Lock& lock) {
  if (later->capture != nullptr || earlier->capture != nullptr) {
    CUevent_st between;
    if (earlier->capture != nullptr) {
      between.capture = earlier->capture->id;
      between.nodes = earlier->dependencies;
    } else {
      between.captured = w.engine.next_id();
    }
    return wait_for_event(w, later, between, 0, lock);
  }
  Operation wait;
  wait.name = "a producer's wait";
  wait.after = w.tail_of(earlier);
  w.submit(later, std::move(wait), lock);
  return success;
}

Result admit_event_question(World& w, const CUevent_st& event) {
  if (event.capture == 0) return w.captures.refuse_unsafe(w.thread().number, w.thread().capture_mode);
  Capture* const ongoing = w.captures.find(event.capture);
  if (ongoing == nullptr) return w.settings.stale_event_answer;
  w.captures.invalidate(*ongoing);
  return captured_event;
}

}  // namespace fake
