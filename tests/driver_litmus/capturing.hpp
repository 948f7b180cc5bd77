// A capture under way, and what became of it.
#pragma once

#include "probe.hpp"

namespace ferry::litmus {

inline constexpr int capture_global = 0, capture_thread_local = 1, capture_relaxed = cuda::capture_mode_relaxed;

// "none", "active", "invalidated"; or the code where the question is refused.
[[nodiscard]] inline std::string capture_state(const Lab& lab, cuda::CUstream stream) {
  int status = -1;
  const cuda::CUresult code = lab.driver().cuStreamIsCapturing(stream, &status);
  if (code != cuda::success) return say(code);
  switch (status) {
    case cuda::capture_status_none:
      return "none";
    case cuda::capture_status_active:
      return "active";
    case cuda::capture_status_invalidated:
      return "invalidated";
    default:
      return "status " + std::to_string(status);
  }
}

// A call's answer, and what it did to the capture of a stream.
[[nodiscard]] inline std::string with_state(const Lab& lab, cuda::CUresult code, cuda::CUstream stream) {
  return say(code) + ", capture " + capture_state(lab, stream);
}

class Capture {
 public:
  explicit Capture(const Lab& lab, cuda::CUstream stream, int mode = capture_global) : lab_(lab), stream_(stream) {
    const Driver& d = lab.driver();
    if (d.cuStreamBeginCapture == nullptr || d.cuStreamEndCapture == nullptr || d.cuGraphDestroy == nullptr)
      throw NotAsked("this driver has no captures");
    lab.must(d.cuStreamBeginCapture(stream, mode), "cuStreamBeginCapture");
  }
  ~Capture() {
    if (!ended_) end();
    if (graph_ != nullptr) lab_.driver().cuGraphDestroy(graph_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cuda::CUresult end() { return end_in(stream_); }
  // Ends it in a stream of the caller's choice; only success, or the stream's own end, counts as the end.
  cuda::CUresult end_in(cuda::CUstream stream) {
    cuda::CUgraph graph = nullptr;
    const cuda::CUresult code = lab_.driver().cuStreamEndCapture(stream, &graph);
    ended_ = capture_state(lab_, stream_) == "none";
    if (graph != nullptr) graph_ = graph;
    return code;
  }
  [[nodiscard]] cuda::CUgraph graph() const { return graph_; }

 private:
  const Lab& lab_;
  cuda::CUstream stream_;
  cuda::CUgraph graph_ = nullptr;
  bool ended_ = false;
};

// While it lives, this thread's captures and calls are in this mode.
class ExchangedMode {
 public:
  explicit ExchangedMode(const Lab& lab, int mode) : lab_(lab), mode_(mode) {
    lab.must(lab.driver().cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
  }
  ~ExchangedMode() { lab_.driver().cuThreadExchangeStreamCaptureMode(&mode_); }
  ExchangedMode(const ExchangedMode&) = delete;
  ExchangedMode& operator=(const ExchangedMode&) = delete;
  [[nodiscard]] int before() const { return mode_; }

 private:
  const Lab& lab_;
  int mode_;
};

}  // namespace ferry::litmus
