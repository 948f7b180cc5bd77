// Copies that become part of a CUDA graph, for the Python layer.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "bind/device_path.hpp"
#include "bind/device_source.hpp"
#include "bind/fetch.hpp"
#include "bind/gil.hpp"
#include "bind/pending_copies.hpp"
#include "bind/pinned_place.hpp"
#include "bind/register.hpp"
#include "core/error.hpp"
#include "transfer/captured.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

cuda::CUstream stream_of(std::int64_t number) {
  if (const auto stream = cuda::stream_from_dlpack(number)) return *stream;
  throw Error(ErrorKind::device, "stream=-1", "a graph is captured and replayed in a stream", "name that stream");
}

std::string state_of_capture(int device, std::int64_t number) {
  const cuda::CUstream stream = stream_of(number);
  const GilReleased released(true);
  switch (capture_of(transfers(), device, stream)) {
    case cuda::CaptureState::none:
      return "none";
    case cuda::CaptureState::active:
      return "active";
    case cuda::CaptureState::invalidated:
      return "invalidated";
    default:
      return "implicit";
  }
}

PendingCopies end_of_work_in(int device, std::int64_t number) {
  const cuda::CUstream stream = stream_of(number);
  const GilReleased released(true);
  return PendingCopies{end_of_work(transfers(), device, stream)};
}

Error not_pinned(const TensorRef& destination) {
  return {ErrorKind::device, summary(destination) + ", the destination of a copy in a graph",
          "the driver copies into pinned memory only, and inside a capture nothing can be pinned",
          "pass memory that was pinned before the capture: ferry.empty_pinned(...) or ferry.pinned(array); memory that "
          "waits for its first use with a device is pinned by any copy into it"};
}

// With the GIL; whatever may be released last, is released without.
class Capture {
 public:
  Capture() : copies_(std::make_unique<CapturedCopies>(transfers())) {}

  void add(const DeviceSource& source, const Source& destination) {
    PinnedPlace place;
    {
      const GilReleased released(true);
      place = pinned_place(host_bytes(destination.ref), source.tensor.device);
    }
    const bool is_empty = element_count(destination.ref.layout.shape).value_or(0) == 0;
    if (!is_empty && (!place || (place.range && place.range->read_only()))) throw not_pinned(destination.ref);
    DeviceTensor from = source.tensor;
    from.ref.dtype = destination.ref.dtype;  // what it is read as
    copies_->add(from, target_in(destination, std::move(place)));
  }

  py::tuple enqueue() {
    CapturedFacts facts;
    {
      const GilReleased released(true);
      facts = copies_->enqueue();
      note_pending_work();
    }
    return py::make_tuple(facts.driver_copies, facts.held_for_good);
  }

 private:
  std::unique_ptr<CapturedCopies> copies_;
};

}  // namespace

void register_graph(py::module_& module) {
  module.def("capture_state", &state_of_capture, py::arg("device"), py::arg("stream"),
             "Does this stream capture: \"none\", \"active\", \"invalidated\", or \"implicit\" for the legacy stream "
             "while work in it would destroy the capture of another?");
  module.def("end_of_work", &end_of_work_in, py::arg("device"), py::arg("stream"),
             "The end of all work that a stream has now.");
  py::class_<Capture>(module, "Capture", "Copies to pinned memory that become part of the graphs being captured.")
      .def(py::init<>())
      .def("add", &Capture::add, py::arg("source"), py::arg("destination"),
           "Check one copy and note it; nothing is enqueued.")
      .def("enqueue", &Capture::enqueue,
           "Make all of them part of the graphs: how many copies that are, and whether what they touch is held for "
           "good, since the driver does not tell when a graph is gone.");
}

}  // namespace ferry::bind
