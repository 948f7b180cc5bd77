// Replays of captured work, and objects that live as long as a graph.
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "capturing.hpp"

namespace ferry::litmus {
namespace {

class Executable {
 public:
  Executable(const Lab& lab, cuda::CUgraph graph) : lab_(lab) {
    const Driver& d = lab.driver();
    lab.need(d.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
    lab.need(d.cuGraphLaunch, "cuGraphLaunch");
    lab.need(d.cuGraphExecDestroy, "cuGraphExecDestroy");
    lab.must(d.cuGraphInstantiateWithFlags(&exec_, graph, 0), "cuGraphInstantiateWithFlags");
  }
  ~Executable() { lab_.driver().cuGraphExecDestroy(exec_); }
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  void launch(cuda::CUstream stream) const { lab_.must(lab_.driver().cuGraphLaunch(exec_, stream), "cuGraphLaunch"); }

 private:
  const Lab& lab_;
  cuda::CUgraphExec exec_ = nullptr;
};

std::string replay(Lab& lab) {
  const Probe probe(lab);
  const Stream stream(lab);
  Capture capture(lab, stream);
  probe.change(stream);
  probe.fetch(stream);
  lab.must(capture.end(), "cuStreamEndCapture");
  const Executable executable(lab, capture.graph());
  executable.launch(stream);
  lab.settle();
  return probe.fetched();
}

// A captured copy to the device whose source changes between capture and replay.
std::string source_of_a_replay(Lab& lab) {
  const Probe probe(lab);
  const Pinned source(lab, Probe::nbytes);
  const Stream stream(lab);
  std::memset(source.data(), Probe::old_byte, Probe::nbytes);
  Capture capture(lab, stream);
  lab.must(lab.driver().cuMemcpyHtoDAsync(probe.cell(), source.data(), Probe::nbytes, stream), "cuMemcpyHtoDAsync");
  probe.fetch(stream);
  lab.must(capture.end(), "cuStreamEndCapture");
  const Executable executable(lab, capture.graph());
  std::memset(source.data(), Probe::new_byte, Probe::nbytes);
  executable.launch(stream);
  lab.settle();
  return probe.fetched();
}

struct Destroyed {
  std::atomic<bool> called{false};
  std::thread::id thread;

  static void call(void* self) {
    auto* destroyed = static_cast<Destroyed*>(self);
    destroyed->thread = std::this_thread::get_id();
    destroyed->called.store(true, std::memory_order_release);
  }
  [[nodiscard]] bool within(std::chrono::milliseconds patience) const {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < until) {
      if (called.load(std::memory_order_acquire)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return called.load(std::memory_order_acquire);
  }
};

// Gives the graph that is being captured an object that tells of its end.
void retain(const Lab& lab, cuda::CUstream stream, Destroyed& destroyed) {
  const Driver& d = lab.driver();
  if (!d.have_graphs()) lab.need(d.cuUserObjectCreate, "cuUserObjectCreate");
  int status = 0;
  cuda::CUgraph graph = nullptr;
  lab.must(d.cuStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr), "cuStreamGetCaptureInfo");
  cuda::CUuserObject object = nullptr;
  lab.must(d.cuUserObjectCreate(&object, &destroyed, &Destroyed::call, 1, 1), "cuUserObjectCreate");
  const cuda::CUresult code = d.cuGraphRetainUserObject(graph, object, 1, 1);  // 1: our reference moves to the graph
  if (code != cuda::success) d.cuUserObjectRelease(object, 1);
  lab.must(code, "cuGraphRetainUserObject");
}

enum class Asked : unsigned char { whether, where };

std::string destroyed_with_the_graph(Lab& lab, Asked asked) {
  static Destroyed destroyed[2];  // outlives a destructor that comes too late
  Destroyed& ours = destroyed[static_cast<std::size_t>(asked)];
  {
    const Stream stream(lab);
    Capture capture(lab, stream);
    retain(lab, stream, ours);
    lab.must(capture.end(), "cuStreamEndCapture");
  }
  if (!ours.within(std::chrono::seconds(10))) return "not called";
  if (asked == Asked::whether) return "called";
  return ours.thread == std::this_thread::get_id() ? "the caller's thread" : "another thread";
}

std::string kept_by_the_executable(Lab& lab) {
  static Destroyed destroyed;
  std::string early;
  {
    const Stream stream(lab);
    std::unique_ptr<Executable> executable;
    {
      Capture capture(lab, stream);
      retain(lab, stream, destroyed);
      lab.must(capture.end(), "cuStreamEndCapture");
      executable = std::make_unique<Executable>(lab, capture.graph());
    }  // the graph goes here
    early = destroyed.within(std::chrono::milliseconds(50)) ? "called with the graph" : "kept";
  }
  return early + (destroyed.within(std::chrono::seconds(10)) ? ", then called" : ", never called");
}

std::string destroyed_with_a_lost_capture(Lab& lab) {
  static Destroyed destroyed;
  {
    const Stream stream(lab);
    Capture capture(lab, stream);
    retain(lab, stream, destroyed);
    lab.driver().cuStreamQuery(stream);  // destroys the capture
    capture.end();
  }
  return destroyed.within(std::chrono::seconds(10)) ? "called" : "not called";
}

}  // namespace

std::span<const Question> graph_questions() {
  static const std::vector<Question> all{
      {"replay_runs_the_work", "a replay does what was captured, in its order", Basis::documented, {new_value}, replay},
      {"replay_reads_its_source_then",
       "a replay reads memory when it runs, not as it was at the capture",
       Basis::documented,
       {new_value},
       source_of_a_replay},
      {"object_ends_with_the_graph",
       "a graph's user object is destroyed when the graph is",
       Basis::documented,
       {"called"},
       [](Lab& lab) { return destroyed_with_the_graph(lab, Asked::whether); }},
      {"object_ends_on_a_thread_of_the_driver",
       "its destructor runs on a thread of the driver",
       Basis::documented,
       {"another thread"},
       [](Lab& lab) { return destroyed_with_the_graph(lab, Asked::where); }},
      {"object_is_kept_by_the_executable",
       "an executable made of the graph keeps the object",
       Basis::documented,
       {"kept, then called"},
       kept_by_the_executable},
      {"object_ends_with_a_lost_capture",
       "a lost capture ends its graph's objects",
       Basis::assumed,
       {"called"},
       destroyed_with_a_lost_capture},
  };
  return all;
}

}  // namespace ferry::litmus
