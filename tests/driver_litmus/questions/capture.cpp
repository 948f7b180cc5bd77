// Captures of one stream, and the thread's mode.
#include "capturing.hpp"

namespace ferry::litmus {
namespace {

std::string exchange(const Lab& lab, int mode) {
  int value = mode;
  const cuda::CUresult code = lab.driver().cuThreadExchangeStreamCaptureMode(&value);
  return code == cuda::success ? std::to_string(value) : say(code);
}

// A capture that somebody's query has destroyed.
void invalidate(const Lab& lab, cuda::CUstream capturing) { lab.driver().cuStreamQuery(capturing); }

std::string capture_info(const Lab& lab, cuda::CUstream stream) {
  int status = -1;
  std::uint64_t id = 0;
  cuda::CUgraph graph = nullptr;
  const cuda::CUresult code = lab.driver().cuStreamGetCaptureInfo(stream, &status, &id, &graph, nullptr, nullptr);
  if (code != cuda::success) return say(code);
  return "status " + std::to_string(status) + (id != 0 ? ", an id" : ", no id") +
         (graph != nullptr ? ", a graph" : ", no graph");
}

}  // namespace

std::span<const Question> capture_questions() {
  static const std::vector<Question> all{
      {"exchange_gives_the_old_mode",
       "the exchange gives the mode of before: global at first, then what was set",
       Basis::documented,
       {"0, then 2"},
       [](Lab& lab) {
         const std::string first = exchange(lab, capture_relaxed);
         return first + ", then " + exchange(lab, capture_global);
       }},
      {"exchange_with_an_unknown_mode",
       "an unknown mode is refused",
       Basis::documented,
       {say(result::invalid_value)},
       [](Lab& lab) { return exchange(lab, 7); }},
      {"each_thread_has_its_mode",
       "one thread's mode does not change another's",
       Basis::documented,
       {"0"},
       [](Lab& lab) {
         const ExchangedMode relaxed(lab, capture_relaxed);
         return lab.in_another_thread([&lab] { return exchange(lab, capture_global); });
       }},
      {"is_capturing_outside",
       "a stream without a capture says so",
       Basis::documented,
       {"none"},
       [](Lab& lab) {
         const Stream stream(lab);
         return capture_state(lab, stream);
       }},
      {"info_outside",
       "and has no capture's id",
       Basis::documented,
       {"status 0, no id, no graph"},
       [](Lab& lab) {
         const Stream stream(lab);
         return capture_info(lab, stream);
       }},
      {"begin_on_the_legacy_stream",
       "the legacy stream cannot be captured",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         lab.need(lab.driver().cuStreamBeginCapture, "cuStreamBeginCapture");
         return accepted(lab.driver().cuStreamBeginCapture(legacy, capture_global));
       }},
      {"begin_twice",
       "a capture cannot begin in a stream that is capturing",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         const Stream stream(lab);
         const Capture capture(lab, stream);
         return accepted(lab.driver().cuStreamBeginCapture(stream, capture_global));
       }},
      {"begin_on_the_per_thread_stream",
       "the per-thread stream can be captured",
       Basis::assumed,
       {"active"},
       [](Lab& lab) {
         const Capture capture(lab, per_thread);
         return capture_state(lab, per_thread);
       }},
      {"is_capturing_inside",
       "a capturing stream says so, and no longer after the end",
       Basis::documented,
       {"active, then none"},
       [](Lab& lab) {
         const Stream stream(lab);
         Capture capture(lab, stream);
         const std::string inside = capture_state(lab, stream);
         lab.must(capture.end(), "cuStreamEndCapture");
         return inside + ", then " + capture_state(lab, stream);
       }},
      {"info_inside",
       "a capture has an id and a graph while it goes on",
       Basis::documented,
       {"status 1, an id, a graph"},
       [](Lab& lab) {
         const Stream stream(lab);
         const Capture capture(lab, stream);
         return capture_info(lab, stream);
       }},
      {"captured_copy_does_not_run",
       "a captured copy moves nothing",
       Basis::documented,
       {"neither value"},
       [](Lab& lab) {
         Probe probe(lab);
         const Stream stream(lab);
         Capture capture(lab, stream);
         probe.fetch(stream);
         lab.must(capture.end(), "cuStreamEndCapture");
         lab.settle();
         return probe.fetched();
       }},
      {"query_of_a_captured_event",
       "an event recorded in a capture cannot be queried",
       Basis::documented,
       {say(result::captured_event)},
       [](Lab& lab) {
         const Stream stream(lab);
         const Event event(lab);
         const Capture capture(lab, stream);
         event.record(stream);
         return say(lab.driver().cuEventQuery(event));
       }},
      {"capture_after_such_a_query",
       "what that query does to the capture, in a relaxed thread",
       Basis::open,
       {"active", "invalidated"},
       [](Lab& lab) {
         const Stream stream(lab);
         const Event event(lab);
         const Capture capture(lab, stream);
         event.record(stream);
         const ExchangedMode relaxed(lab, capture_relaxed);
         lab.driver().cuEventQuery(event);
         return capture_state(lab, stream);
       }},
      {"query_of_a_captured_event_after_the_end",
       "how it answers when the capture has ended",
       Basis::open,
       {},
       [](Lab& lab) {
         const Stream stream(lab);
         const Event event(lab);
         Capture capture(lab, stream);
         event.record(stream);
         lab.must(capture.end(), "cuStreamEndCapture");
         return say(lab.driver().cuEventQuery(event));
       }},
      {"captured_event_recorded_again",
       "recorded again outside, it is an ordinary event",
       Basis::assumed,
       {"success"},
       [](Lab& lab) {
         const Stream stream(lab);
         const Event event(lab);
         Capture capture(lab, stream);
         event.record(stream);
         lab.must(capture.end(), "cuStreamEndCapture");
         event.record(stream);
         lab.settle();
         return say(lab.driver().cuEventQuery(event));
       }},
      {"wait_for_a_captured_event",
       "it cannot be waited for by the host either",
       Basis::documented,
       {say(result::captured_event)},
       [](Lab& lab) {
         const Stream stream(lab);
         const Event event(lab);
         const Capture capture(lab, stream);
         event.record(stream);
         return say(lab.driver().cuEventSynchronize(event));
       }},
      {"query_of_the_capturing_stream",
       "a capturing stream cannot be queried, and its capture is lost",
       Basis::assumed,
       {say(result::stream_capture_unsupported) + ", capture invalidated"},
       [](Lab& lab) {
         const Stream stream(lab);
         const Capture capture(lab, stream);
         return with_state(lab, lab.driver().cuStreamQuery(stream), stream);
       }},
      {"context_of_the_capturing_stream",
       "its context can be asked for",
       Basis::assumed,
       {"success, capture active"},
       [](Lab& lab) {
         const Stream stream(lab);
         const Capture capture(lab, stream);
         cuda::CUcontext context = nullptr;
         return with_state(lab, lab.driver().cuStreamGetCtx(stream, &context), stream);
       }},
      {"end_of_a_lost_capture",
       "a lost capture ends with 901 and without a graph",
       Basis::documented,
       {say(result::stream_capture_invalidated) + ", no graph, capture none"},
       [](Lab& lab) {
         const Stream stream(lab);
         Capture capture(lab, stream);
         invalidate(lab, stream);
         const std::string code = say(capture.end());
         return code + (capture.graph() == nullptr ? ", no graph" : ", a graph") + ", capture " +
                capture_state(lab, stream);
       }},
      {"copy_in_a_lost_capture",
       "work in a lost capture is refused",
       Basis::documented,
       {say(result::stream_capture_invalidated)},
       [](Lab& lab) {
         const Probe probe(lab);
         const Stream stream(lab);
         const Capture capture(lab, stream);
         invalidate(lab, stream);
         return say(lab.driver().cuMemcpyDtoHAsync(probe.host(), probe.cell(), 64, stream));
       }},
      {"end_in_another_thread",
       "a capture that is not relaxed ends in its own thread only",
       Basis::documented,
       {say(result::stream_capture_wrong_thread)},
       [](Lab& lab) {
         const Stream stream(lab);
         Capture capture(lab, stream);
         return lab.in_another_thread([&] { return say(capture.end()); });
       }},
      {"end_of_a_relaxed_capture_in_another_thread",
       "a relaxed one ends anywhere",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         const Stream stream(lab);
         Capture capture(lab, stream, capture_relaxed);
         return lab.in_another_thread([&] { return say(capture.end()); });
       }},
      {"end_outside_of_a_capture",
       "there is nothing to end in a stream without a capture",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         lab.need(lab.driver().cuStreamEndCapture, "cuStreamEndCapture");
         const Stream stream(lab);
         cuda::CUgraph graph = nullptr;
         return accepted(lab.driver().cuStreamEndCapture(stream, &graph));
       }},
  };
  return all;
}

}  // namespace ferry::litmus
