// Captures and other streams: joining by waits, the border of a capture, and the legacy stream beside one.
#include "capturing.hpp"

namespace ferry::litmus {
namespace {

// A capture that a second stream has joined by waiting for a captured event.
struct Joined {
  explicit Joined(const Lab& in) : lab(in), origin(in), joined(in), fork(in), back(in), capture(in, origin) {
    fork.record(origin);
    lab.must(lab.driver().cuStreamWaitEvent(joined, fork, 0), "cuStreamWaitEvent");
  }
  void rejoin() const {
    back.record(joined);
    lab.must(lab.driver().cuStreamWaitEvent(origin, back, 0), "cuStreamWaitEvent");
  }

  const Lab& lab;
  Stream origin, joined;
  Event fork, back;
  Capture capture;
};

std::string end(Joined& joined) {
  const std::string code = say(joined.capture.end());
  return code + (joined.capture.graph() == nullptr ? ", no graph" : ", a graph");
}

// Uses the legacy stream while a stream of this kind captures.
template <class Use>
std::string beside(Lab& lab, unsigned flags, Use use) {
  const Stream stream(lab, flags);
  const Capture capture(lab, stream);
  return with_state(lab, use(), stream);
}

cuda::CUresult ask_legacy(Lab& lab) {
  int status = 0;
  return lab.driver().cuStreamIsCapturing(legacy, &status);
}

cuda::CUresult legacy_info(Lab& lab) {
  int status = 0;
  return lab.driver().cuStreamGetCaptureInfo(legacy, &status, nullptr, nullptr, nullptr, nullptr);
}

std::string copy_beside(Lab& lab, unsigned flags) {
  const DeviceBytes bytes(lab, 4096);
  return beside(lab, flags, [&] { return lab.driver().cuMemcpyDtoDAsync(bytes, bytes + 2048, 16, legacy); });
}

std::string record_beside(Lab& lab, unsigned flags) {
  const Event event(lab);
  return beside(lab, flags, [&] { return lab.driver().cuEventRecord(event, legacy); });
}

const std::string implicit = say(result::stream_capture_implicit);

}  // namespace

std::span<const Question> capture_join_questions() {
  static const std::vector<Question> all{
      {"wait_for_a_captured_event_joins",
       "a stream that waits for a captured event is captured, too",
       Basis::documented,
       {"active"},
       [](Lab& lab) {
         const Joined joined(lab);
         std::string state = capture_state(lab, joined.joined);
         joined.rejoin();
         return state;
       }},
      {"end_after_rejoining",
       "the capture ends well when every stream has come back",
       Basis::documented,
       {"success"},
       [](Lab& lab) {
         Joined joined(lab);
         joined.rejoin();
         return say(joined.capture.end());
       }},
      {"end_without_rejoining",
       "and is lost when one has not, and has work",
       Basis::documented,
       {say(result::stream_capture_unjoined) + ", no graph"},
       [](Lab& lab) {
         const DeviceBytes bytes(lab, 4096);
         Joined joined(lab);
         lab.must(lab.driver().cuMemcpyDtoDAsync(bytes, bytes + 2048, 16, joined.joined), "cuMemcpyDtoDAsync");
         return end(joined);
       }},
      {"end_without_rejoining_idle_streams",
       "whether a joined stream without work of its own must come back",
       Basis::open,
       {},
       [](Lab& lab) {
         Joined joined(lab);
         return end(joined);
       }},
      {"end_in_a_joined_stream",
       "a capture ends in the stream where it began",
       Basis::documented,
       {say(result::stream_capture_unmatched)},
       [](Lab& lab) {
         Joined joined(lab);
         return say(joined.capture.end_in(joined.joined));
       }},
      {"joined_stream_after_the_end",
       "after the end the joined stream is free again",
       Basis::documented,
       {"none"},
       [](Lab& lab) {
         Joined joined(lab);
         joined.rejoin();
         lab.must(joined.capture.end(), "cuStreamEndCapture");
         return capture_state(lab, joined.joined);
       }},
      {"wait_for_an_event_from_outside",
       "a capturing stream cannot wait for work outside of its capture",
       Basis::documented,
       {say(result::stream_capture_isolation) + ", capture invalidated"},
       [](Lab& lab) {
         const Stream outside(lab);
         const Event event(lab);
         const Stream stream(lab);
         event.record(outside);
         const Capture capture(lab, stream);
         return with_state(lab, lab.driver().cuStreamWaitEvent(stream, event, 0), stream);
       }},
      {"wait_for_a_captured_event_after_the_end",
       "whether a stream can wait for a captured event when the capture is over",
       Basis::open,
       {},
       [](Lab& lab) {
         const Stream stream(lab);
         const Stream other(lab);
         const Event event(lab);
         Capture capture(lab, stream);
         event.record(stream);
         lab.must(capture.end(), "cuStreamEndCapture");
         return say(lab.driver().cuStreamWaitEvent(other, event, 0));
       }},
      {"wait_for_a_never_recorded_event",
       "whether a capturing stream may wait for an event that was never recorded",
       Basis::open,
       {},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         const Capture capture(lab, stream);
         return with_state(lab, lab.driver().cuStreamWaitEvent(stream, event, 0), stream);
       }},
      {"two_captures_meet",
       "a wait cannot merge two captures",
       Basis::documented,
       {say(result::stream_capture_merge)},
       [](Lab& lab) {
         const Event event(lab);
         const Stream one(lab);
         const Stream other(lab);
         const Capture first(lab, one);
         const Capture second(lab, other);
         event.record(one);
         return say(lab.driver().cuStreamWaitEvent(other, event, 0));
       }},
      {"legacy_wait_for_a_captured_event",
       "the legacy stream cannot join a capture",
       Basis::documented,
       {"refused"},
       [](Lab& lab) {
         const Event event(lab);
         const Stream stream(lab);
         const Capture capture(lab, stream);
         event.record(stream);
         return accepted(lab.driver().cuStreamWaitEvent(legacy, event, 0));
       }},
      {"captured_fetch_to_pageable_memory",
       "whether a copy to pageable memory can be captured",
       Basis::open,
       {},
       [](Lab& lab) {
         const Probe probe(lab);
         const Pages pages(4096);
         const Stream stream(lab);
         const Capture capture(lab, stream);
         return with_state(lab, lab.driver().cuMemcpyDtoHAsync(pages.data(), probe.cell(), 4096, stream), stream);
       }},
      {"captured_copy_from_pageable_memory",
       "whether a copy from pageable memory can",
       Basis::open,
       {},
       [](Lab& lab) {
         const Probe probe(lab);
         const Pages pages(4096);
         const Stream stream(lab);
         const Capture capture(lab, stream);
         return with_state(lab, lab.driver().cuMemcpyHtoDAsync(probe.cell(), pages.data(), 4096, stream), stream);
       }},
      {"legacy_asked_beside_a_blocking_capture",
       "asked whether it captures, the legacy stream answers 906; the capture goes on",
       Basis::documented,
       {implicit + ", capture active"},
       [](Lab& lab) { return beside(lab, blocking, [&] { return ask_legacy(lab); }); }},
      {"legacy_info_beside_a_blocking_capture",
       "so it does when asked for details",
       Basis::documented,
       {implicit + ", capture active"},
       [](Lab& lab) { return beside(lab, blocking, [&] { return legacy_info(lab); }); }},
      {"legacy_copy_beside_a_blocking_capture",
       "work in the legacy stream destroys a capture of a blocking stream",
       Basis::documented,
       {implicit + ", capture invalidated"},
       [](Lab& lab) { return copy_beside(lab, blocking); }},
      {"legacy_record_beside_a_blocking_capture",
       "so does a record there",
       Basis::documented,
       {implicit + ", capture invalidated"},
       [](Lab& lab) { return record_beside(lab, blocking); }},
      {"legacy_asked_beside_a_non_blocking_capture",
       "beside a non-blocking stream's capture the legacy stream can be asked",
       Basis::documented,
       {"success, capture active"},
       [](Lab& lab) { return beside(lab, non_blocking, [&] { return ask_legacy(lab); }); }},
      {"legacy_copy_beside_a_non_blocking_capture",
       "and used",
       Basis::documented,
       {"success, capture active"},
       [](Lab& lab) { return copy_beside(lab, non_blocking); }},
      {"legacy_record_beside_a_non_blocking_capture",
       "and recorded in",
       Basis::documented,
       {"success, capture active"},
       [](Lab& lab) { return record_beside(lab, non_blocking); }},
  };
  return all;
}

}  // namespace ferry::litmus
