// Copies to pinned memory that become part of a graph: each replay makes them again.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cuda/capture.hpp"
#include "transfer/moves.hpp"
#include "transfer/transfers.hpp"

namespace ferry {

struct CapturedFacts {
  std::size_t driver_copies = 0;
  bool held_for_good = false;  // the driver does not tell when a graph is gone
};

// Copies on capturing streams: nothing is allocated, asked for, waited for, or put on a stream of ours. Not for two
// threads at once.
class CapturedCopies {
 public:
  explicit CapturedCopies(Transfers& transfers) noexcept : transfers_(transfers) {}

  // Checks a copy, and enqueues nothing. `target` may have another layout than the source. Throws Error.
  void add(const DeviceTensor& source, const HostTarget& target);
  // Makes all that was added part of the graphs that the streams are capturing. The graphs hold what is touched. Throws
  // Error: before anything is enqueued when a stream is not capturing, or its capture is invalid.
  CapturedFacts enqueue();

 private:
  struct Copy {
    DeviceTensor source;
    HostTarget target;
    std::vector<Move> moves;
  };

  [[nodiscard]] bool hold_all();

  Transfers& transfers_;
  std::vector<Copy> copies_;
};

// The graph that the tensor's stream is capturing. The context is current. Throws Error when there is none.
[[nodiscard]] cuda::CUgraph graph_being_captured(const cuda::Functions& functions, const DeviceTensor& tensor);

// Does this stream of the device capture? Safe during captures. Throws Error.
[[nodiscard]] cuda::CaptureState capture_of(Transfers& transfers, int device, cuda::CUstream stream);

// The end of all work that this stream has now, such as replays. The device counts for default streams only. Throws
// Error, also when the stream is capturing.
[[nodiscard]] std::shared_ptr<Pending> end_of_work(Transfers& transfers, int device, cuda::CUstream stream);

}  // namespace ferry
