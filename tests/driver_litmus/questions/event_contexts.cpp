// Events where no context is current, or another than theirs.
#include "probe.hpp"
#include "second_context.hpp"

namespace ferry::litmus {
namespace {

std::string record_across(Lab& lab) {
  const Event event(lab);
  const SecondContext other(lab);
  const Pushed pushed(lab, other);
  const Stream stream(lab);
  return say(lab.driver().cuEventRecord(event, stream));
}

// A stream of another context waits for our event; when its own event is done, so must ours be.
std::string wait_across(Lab& lab) {
  const Event ours(lab);
  const Stream producer(lab);
  lab.work_long(producer);
  ours.record(producer);
  const SecondContext other(lab);
  const Pushed pushed(lab, other);
  const Event theirs(lab);
  const Stream consumer(lab);
  lab.must(lab.driver().cuStreamWaitEvent(consumer, ours, 0), "cuStreamWaitEvent");
  theirs.record(consumer);
  theirs.wait();
  return say(lab.driver().cuEventQuery(ours));
}

std::string context_record(Lab& lab) {
  lab.need(lab.driver().cuCtxRecordEvent, "cuCtxRecordEvent");
  const Event event(lab);
  const Stream stream(lab);
  lab.work_long(stream);
  lab.must(lab.driver().cuCtxRecordEvent(lab.context(), event), "cuCtxRecordEvent");
  event.wait();
  return say(lab.driver().cuStreamQuery(stream));
}

}  // namespace

std::span<const Question> event_context_questions() {
  static const std::vector<Question> all{
      {"record_in_a_stream_of_another_context",
       "an event and its stream must share a context",
       Basis::documented,
       {say(result::invalid_handle)},
       record_across},
      {"wait_in_a_stream_of_another_context",
       "a stream may wait for an event of another context or device",
       Basis::documented,
       {"success"},
       wait_across},
      {"query_from_another_context",
       "an event can be queried while another context is current",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         event.record(legacy);
         event.wait();
         const SecondContext other(lab);
         const Pushed pushed(lab, other);
         return say(lab.driver().cuEventQuery(event));
       }},
      {"context_record_covers_non_blocking_streams",
       "cuCtxRecordEvent covers every stream of its context",
       Basis::documented,
       {"success"},
       context_record},
      {"create_without_context",
       "an event cannot be made where no context is current",
       Basis::documented,
       {say(result::invalid_context)},
       [](Lab& lab) {
         const WithoutContext without(lab);
         cuda::CUevent event = nullptr;
         return say(lab.driver().cuEventCreate(&event, cuda::event_disable_timing));
       }},
      {"destroy_without_context",
       "an event can be destroyed where no context is current",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         Event event(lab);
         const WithoutContext without(lab);
         return say(event.destroy());
       }},
      {"query_without_context",
       "an event can be queried where no context is current",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         event.record(legacy);
         event.wait();
         const WithoutContext without(lab);
         return say(lab.driver().cuEventQuery(event));
       }},
      {"wait_without_context",
       "an event can be waited for where no context is current",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         lab.work_long(stream);
         event.record(stream);
         const WithoutContext without(lab);
         return say(lab.driver().cuEventSynchronize(event));
       }},
      {"record_without_context",
       "whether an event can be recorded in a real stream where no context is current",
       Basis::open,
       {"success", say(result::invalid_context)},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         const WithoutContext without(lab);
         return say(lab.driver().cuEventRecord(event, stream));
       }},
      {"stream_wait_without_context",
       "whether a real stream can be made to wait where no context is current",
       Basis::open,
       {"success", say(result::invalid_context)},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         event.record(stream);
         const WithoutContext without(lab);
         return say(lab.driver().cuStreamWaitEvent(stream, event, 0));
       }},
      {"record_in_legacy_while_another_context_is_current",
       "the legacy handle follows the current context: our event is refused there",
       Basis::documented,
       {say(result::invalid_handle)},
       [](Lab& lab) {
         const Event event(lab);
         const SecondContext other(lab);
         const Pushed pushed(lab, other);
         return say(lab.driver().cuEventRecord(event, legacy));
       }},
  };
  return all;
}

}  // namespace ferry::litmus
