// The legacy stream's barriers: both ways with blocking streams, none with non-blocking ones.
#include "probe.hpp"

namespace ferry::litmus {
namespace {

// What `reader` sees of a value that `writer` changes late; nothing orders the two but their kinds.
std::string seen(Lab& lab, cuda::CUstream writer, cuda::CUstream reader) {
  Probe probe(lab);
  probe.change_late(writer);
  std::string value = probe.read(reader);
  lab.settle();
  return value;
}

// After an event recorded in the legacy stream: is the work of this stream done?
std::string after_event_in_legacy(Lab& lab, unsigned flags) {
  const Stream stream(lab, flags);
  const Event event(lab);
  lab.work_long(stream);
  event.record(legacy);
  event.wait();
  return say(lab.driver().cuStreamQuery(stream));
}

}  // namespace

std::span<const Question> legacy_questions() {
  static const std::vector<Question> all{
      {"legacy_waits_for_blocking_streams",
       "work in the legacy stream waits for earlier work of blocking streams",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return seen(lab, Stream(lab, blocking), legacy); }},
      {"blocking_streams_wait_for_legacy",
       "work of a blocking stream waits for earlier work of the legacy stream",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return seen(lab, legacy, Stream(lab, blocking)); }},
      {"legacy_ignores_non_blocking_streams",
       "the legacy stream does not wait for non-blocking streams",
       Basis::documented,
       {old_value},
       [](Lab& lab) { return seen(lab, Stream(lab), legacy); },
       true},
      {"non_blocking_streams_ignore_legacy",
       "nor they for it",
       Basis::documented,
       {old_value},
       [](Lab& lab) { return seen(lab, legacy, Stream(lab)); },
       true},
      {"non_blocking_streams_are_independent",
       "two non-blocking streams do not wait for each other",
       Basis::documented,
       {old_value},
       [](Lab& lab) { return seen(lab, Stream(lab), Stream(lab)); },
       true},
      {"blocking_streams_are_independent",
       "nor do two blocking ones, while nothing is in the legacy stream",
       Basis::documented,
       {old_value},
       [](Lab& lab) { return seen(lab, Stream(lab, blocking), Stream(lab, blocking)); },
       true},
      {"per_thread_stream_waits_for_legacy",
       "the per-thread stream is a blocking one",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return seen(lab, legacy, per_thread); }},
      {"legacy_waits_for_the_per_thread_stream",
       "and the legacy stream waits for it",
       Basis::documented,
       {new_value},
       [](Lab& lab) { return seen(lab, per_thread, legacy); }},
      {"per_thread_stream_and_a_blocking_stream",
       "the per-thread stream does not wait for other blocking streams",
       Basis::documented,
       {old_value},
       [](Lab& lab) { return seen(lab, Stream(lab, blocking), per_thread); },
       true},
      {"each_thread_has_its_per_thread_stream",
       "the same handle in two threads means two streams",
       Basis::documented,
       {old_value},
       [](Lab& lab) {
         Probe probe(lab);
         probe.change_late(per_thread);
         std::string value = lab.in_another_thread([&] { return probe.read(per_thread); });
         lab.settle();
         return value;
       },
       true},
      {"legacy_work_between_blocking_streams",
       "one operation in the legacy stream orders blocking streams before and after it",
       Basis::documented,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const Stream writer(lab, blocking);
         const Stream reader(lab, blocking);
         const DeviceBytes other(lab, 4096);
         probe.change_late(writer);
         lab.must(lab.driver().cuMemcpyDtoDAsync(other, other + 2048, 16, legacy), "cuMemcpyDtoDAsync");
         return probe.read(reader);
       }},
      {"legacy_wait_holds_blocking_streams",
       "what the legacy stream waits for, later work of blocking streams waits for",
       Basis::assumed,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const Stream writer(lab);
         const Stream reader(lab, blocking);
         const Event event(lab);
         probe.change_late(writer);
         event.record(writer);
         lab.must(lab.driver().cuStreamWaitEvent(legacy, event, 0), "cuStreamWaitEvent");
         return probe.read(reader);
       }},
      {"event_in_legacy_covers_blocking_streams",
       "an event recorded in the legacy stream covers earlier work of blocking streams",
       Basis::documented,
       {"success"},
       [](Lab& lab) { return after_event_in_legacy(lab, blocking); }},
      {"event_in_legacy_misses_non_blocking_streams",
       "and none of non-blocking streams",
       Basis::documented,
       {say(result::not_ready)},
       [](Lab& lab) { return after_event_in_legacy(lab, non_blocking); },
       true},
      {"event_orders_non_blocking_streams",
       "record and wait order what nothing else does",
       Basis::documented,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const Stream writer(lab);
         const Stream reader(lab);
         const Event event(lab);
         probe.change_late(writer);
         event.record(writer);
         lab.must(lab.driver().cuStreamWaitEvent(reader, event, 0), "cuStreamWaitEvent");
         return probe.read(reader);
       }},
      {"wait_holds_all_later_work",
       "a wait holds every later operation of its stream, not only the next",
       Basis::documented,
       {new_value},
       [](Lab& lab) {
         Probe probe(lab);
         const DeviceBytes other(lab, 4096);
         const Stream writer(lab);
         const Stream reader(lab);
         const Event event(lab);
         probe.change_late(writer);
         event.record(writer);
         lab.must(lab.driver().cuStreamWaitEvent(reader, event, 0), "cuStreamWaitEvent");
         lab.must(lab.driver().cuMemcpyDtoDAsync(other, other + 2048, 16, reader), "cuMemcpyDtoDAsync");
         return probe.read(reader);
       }},
  };
  return all;
}

}  // namespace ferry::litmus
