// A copy by a kernel of as many blocks as the caller says: for measurements of what they take from others.
#include <cstdint>
#include <utility>
#include <vector>

#include "bind/device_path.hpp"
#include "bind/device_source.hpp"
#include "bind/fetch.hpp"
#include "bind/gil.hpp"
#include "bind/pinned_place.hpp"
#include "bind/register.hpp"
#include "kernels/device_copy.hpp"
#include "transfer/host_target.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/stream_work.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

bool store_by_kernel(const DeviceSource& source, const Source& destination, std::uint32_t blocks) {
  const DeviceTensor& from = source.tensor;
  const TensorRef& to = destination.ref;
  if (blocks == 0 || to.read_only || to.byte_swapped || to.dtype != from.ref.dtype ||
      !(to.layout.shape == from.ref.layout.shape)) {
    throw py::value_error("a destination that does not fit, or no blocks");
  }
  PinnedPlace place;
  {
    const GilReleased released(true);
    place = pinned_place(host_bytes(to), from.device);
  }
  const HostTarget target = target_in(destination, std::move(place));
  const GilReleased released(true);
  const cuda::ContextScope scope = transfers().enter(from);
  const cuda::Kernels* kernels = transfers().kernels(scope, from.stream);
  const auto address = mapped_address(target);
  if (kernels == nullptr || !address) return false;
  const gpu::DeviceCopy copy =
      kernel_copy({*address, to.layout, to.dtype}, {device_address(from.ref.data), from.ref.layout, from.ref.dtype});
  const auto launch = gpu::launch_for(copy, {blocks, gpu::link_bound.threads});
  if (!launch) return false;
  StreamWork work(transfers().runtime(), transfers().retired(), scope, from.stream);
  work.store(scope, {*kernels, *launch}, {from.owner}, {target.lease, target.owner});
  std::vector<std::shared_ptr<const cuda::Event>> events;
  work.finish(events);
  note_pending_work();
  return true;
}

}  // namespace

void register_kernel_store(py::module_& module) {
  module.def("store_by_kernel", &store_by_kernel, py::arg("source"), py::arg("destination"), py::arg("blocks"),
             "Enqueue a copy into pinned memory of ours by a kernel of at most so many blocks, in the source's stream. "
             "False, with nothing done, where there are no kernels.");
}

}  // namespace ferry::bind
