// Captures and graphs as a framework uses them, for tests of transfers.
#pragma once

#include <string>

#include "transfer/captured.hpp"
#include "transfer_world.hpp"

namespace ferry::test {

constexpr const char* every_schedule[] = {"lazy", "eager", "shuffled", "threaded"};

inline void begin_capture(CUstream stream, int mode = 0) {
  EXPECT_EQ(cuda::test::fake<int(void*, int, int)>("fake_begin_capture")(stream, mode, 0), 0);
}

// What was captured, until it dies.
class FrameworkGraph {
 public:
  // Ends the capture.
  explicit FrameworkGraph(CUstream origin)
      : answer_(cuda::test::fake<int(void*, int, void**)>("fake_end_capture")(origin, 0, &graph_)) {}
  FrameworkGraph(const FrameworkGraph&) = delete;
  FrameworkGraph& operator=(const FrameworkGraph&) = delete;
  ~FrameworkGraph() {
    if (graph_ != nullptr) cuda::test::fake<int(void*)>("fake_destroy_graph")(graph_);
  }

  // The driver's answer to the end of the capture.
  [[nodiscard]] int answer() const noexcept { return answer_; }
  void launch(CUstream stream) const {
    EXPECT_EQ(cuda::test::fake<int(void*, void*, int)>("fake_launch_graph")(graph_, stream, 0), 0);
  }

 private:
  void* graph_ = nullptr;
  int answer_;
};

// Adds one copy to the graph that the tensor's stream captures.
inline CapturedFacts capture(TransferWorld& world, const DeviceTensor& tensor, const HostTarget& target) {
  CapturedCopies copies(world.transfers());
  copies.add(tensor, target);
  return copies.enqueue();
}

// Replays, waits, and tells what did not arrive.
inline std::string replayed(TransferWorld& world, const FrameworkGraph& graph, CUstream stream,
                            const TensorRef& arrived, const TensorRef& wanted, const std::string& what) {
  const std::string said = error_text([&] {
    graph.launch(stream);
    end_of_work(world.transfers(), 0, stream)->wait();
  });
  return said + difference(values_of(arrived), values_of(wanted), what);
}

}  // namespace ferry::test
