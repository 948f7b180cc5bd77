// Records and waits, outside of captures and in them.
#pragma once

#include "world.hpp"

namespace fake {

Result record_event(World& w, Event event, Stream at, unsigned flags, Lock& lock);
/// A stream that waits for an event of a capture joins the capture.
Result wait_for_event(World& w, Stream at, const CUevent_st& event, unsigned flags, Lock& lock);
/// Later work of one stream waits for all work so far of another: a record and a wait.
Result order_streams(World& w, Stream later, Stream earlier, Lock& lock);
/// May the host ask this event? Not one that was recorded in a capture last.
Result admit_event_question(World& w, const CUevent_st& event);

}  // namespace fake
