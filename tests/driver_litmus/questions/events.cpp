// What an event stands for, and when it is done.
#include <chrono>
#include <thread>

#include "probe.hpp"

namespace ferry::litmus {
namespace {

using Clock = std::chrono::steady_clock;

std::string query(Lab& lab, cuda::CUevent event) { return say(lab.driver().cuEventQuery(event)); }

// Queries until the answer is no longer "not ready". A driver that needs a wait to make progress never gets there.
std::string poll(Lab& lab, cuda::CUevent event) {
  const auto until = Clock::now() + std::chrono::seconds(10);
  while (Clock::now() < until) {
    const cuda::CUresult code = lab.driver().cuEventQuery(event);
    if (code != result::not_ready) return say(code);
    std::this_thread::yield();
  }
  return "never";
}

std::string wait_then_record_again(Lab& lab) {
  Probe probe(lab);
  const Event event(lab);
  const Stream producer(lab);
  const Stream consumer(lab);
  event.record(producer);
  lab.must(lab.driver().cuStreamWaitEvent(consumer, event, 0), "cuStreamWaitEvent");
  probe.change_late(producer);
  event.record(producer);
  return probe.read(consumer);
}

std::string record_then_wait(Lab& lab) {
  Probe probe(lab);
  const Event event(lab);
  const Stream producer(lab);
  const Stream consumer(lab);
  event.record(producer);
  probe.change_late(producer);
  event.record(producer);
  lab.must(lab.driver().cuStreamWaitEvent(consumer, event, 0), "cuStreamWaitEvent");
  return probe.read(consumer);
}

// The value after the event is known to be done, by a wait with these flags or by polling.
std::string visible_after(Lab& lab, unsigned flags, bool by_polling) {
  Probe probe(lab);
  const Event event(lab, flags);
  const Stream stream(lab);
  probe.change_late(stream);
  probe.fetch(stream);
  event.record(stream);
  if (by_polling) {
    const std::string polled = poll(lab, event);
    if (polled != "success") return polled;
  } else {
    event.wait();
  }
  return probe.fetched();
}

}  // namespace

std::span<const Question> event_questions() {
  static const std::vector<Question> all{
      {"query_of_a_never_recorded_event",
       "an event that was never recorded is done",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         return query(lab, event);
       }},
      {"wait_for_a_never_recorded_event",
       "a host wait for it returns",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         return say(lab.driver().cuEventSynchronize(event));
       }},
      {"stream_wait_for_a_never_recorded_event",
       "a stream's wait for it is nothing",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         return say(lab.driver().cuStreamWaitEvent(stream, event, 0));
       }},
      {"recording_again_leaves_earlier_waits",
       "a wait keeps the state that the event had then",
       Basis::documented,
       {old_value},
       wait_then_record_again,
       true},
      {"wait_takes_the_latest_record",
       "a wait takes the newest record before it",
       Basis::documented,
       {new_value},
       record_then_wait},
      {"recording_again_overwrites",
       "a query answers for the newest record",
       Basis::documented,
       {"success, then " + say(result::not_ready)},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         event.record(stream);
         event.wait();
         const std::string before = query(lab, event);
         lab.work_long(stream);
         event.record(stream);
         return before + ", then " + query(lab, event);
       },
       true},
      {"polling_makes_progress",
       "queries alone see the end of the work",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         lab.work_long(stream);
         event.record(stream);
         return poll(lab, event);
       }},
      {"value_after_a_spinning_wait",
       "after cuEventSynchronize a copy's bytes are there",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return visible_after(lab, cuda::event_disable_timing, false); }},
      {"value_after_a_blocking_wait",
       "the same for an event made for blocking waits",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return visible_after(lab, cuda::event_disable_timing | cuda::event_blocking_sync, false); }},
      {"value_after_polling",
       "and after a query that says done",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return visible_after(lab, cuda::event_disable_timing, true); }},
      {"value_after_polling_in_another_thread",
       "and for a thread that learns of it from the driver",
       Basis::documented,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const Event event(lab);
         const Stream stream(lab);
         probe.change_late(stream);
         probe.fetch(stream);
         event.record(stream);
         return lab.in_another_thread([&] {
           const std::string polled = poll(lab, event);
           return polled == "success" ? probe.fetched() : polled;
         });
       }},
      {"destroy_of_a_pending_event",
       "an event may be destroyed while it is pending; the wait of a stream for it stays",
       Basis::documented,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const Stream producer(lab);
         const Stream consumer(lab);
         {
           const Event event(lab);
           probe.change_late(producer);
           event.record(producer);
           lab.must(lab.driver().cuStreamWaitEvent(consumer, event, 0), "cuStreamWaitEvent");
         }
         return probe.read(consumer);
       }},
      {"elapsed_time_without_timing",
       "events without timing measure nothing",
       Basis::documented,
       {say(result::invalid_handle)},
       [](Lab& lab) {
         lab.need(lab.driver().cuEventElapsedTime, "cuEventElapsedTime");
         const Event start(lab);
         const Event end(lab);
         start.record(legacy);
         end.record(legacy);
         end.wait();
         float ms = 0;
         return say(lab.driver().cuEventElapsedTime(&ms, start, end));
       }},
      {"create_with_an_unknown_flag",
       "unknown flags are refused",
       Basis::assumed,
       {say(result::invalid_value)},
       [](Lab& lab) {
         cuda::CUevent event = nullptr;
         const cuda::CUresult code = lab.driver().cuEventCreate(&event, 0x400);
         if (code == cuda::success) lab.driver().cuEventDestroy(event);
         return say(code);
       }},
      {"record_external_outside_of_a_capture",
       "the external flag is for captures only",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         return say(lab.driver().cuEventRecordWithFlags(event, stream, 1));
       }},
      {"wait_external_outside_of_a_capture",
       "so is that of a wait",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         event.record(stream);
         return say(lab.driver().cuStreamWaitEvent(stream, event, 1));
       }},
  };
  return all;
}

}  // namespace ferry::litmus
