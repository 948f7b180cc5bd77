#include "transfer/refusals.hpp"

#include <string>

#include "core/mutation.hpp"
#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"

namespace ferry {

void refuse_capture(const cuda::Functions& functions, cuda::CUstream stream) {
  if (mutated(Mutation::ignore_capture)) return;
  switch (cuda::capture_state(functions, stream)) {
    case cuda::CaptureState::none:
      return;
    case cuda::CaptureState::active:
      throw Error(ErrorKind::device, "a tensor whose stream is being captured into a graph",
                  "a copy to or from the host would become part of the graph, into memory that is gone when it is "
                  "replayed",
                  "call it before the capture begins or after it has ended");
    case cuda::CaptureState::invalidated:
      throw Error(ErrorKind::device, "a tensor whose stream's capture was invalidated",
                  "its stream takes no work until that capture is ended", "end the capture, then call it again");
    case cuda::CaptureState::implicit:
      throw Error(
          ErrorKind::device, "a tensor of the legacy default stream, while another stream is being captured",
          "work on the legacy stream would destroy that capture",
          "call it before the capture begins or after it has ended, or use the tensor on a non-blocking stream");
  }
}

void refuse_other_device(const cuda::Functions& functions, int device) {
  cuda::CUdevice current = 0;
  cuda::check(functions, functions.cuCtxGetDevice(&current), "cuCtxGetDevice");
  if (current == device) return;
  throw Error(ErrorKind::device, "a tensor of device " + std::to_string(device),
              "its stream belongs to device " + std::to_string(current), "give a stream of the tensor's own device");
}

void refuse_stream(const cuda::Functions& functions, const DeviceTensor& tensor) {
  refuse_other_device(functions, tensor.device);
  refuse_capture(functions, tensor.stream);
}

void refuse_unlike(const TensorRef& destination, const TensorRef& source) {
  const Layout& to = destination.layout;
  const Layout& from = source.layout;
  if (!(to.shape == from.shape) || to.itemsize != from.itemsize) {
    throw Error(ErrorKind::layout, summary(source) + " and " + summary(destination),
                "a transfer moves elements as they are, into equally many of the same size",
                "give a destination of the same shape and dtype, and convert on one side");
  }
  refuse_overlap(destination);
}

void refuse_overlap(const TensorRef& destination) {
  if (!may_overlap_itself(destination.layout)) return;
  throw Error(ErrorKind::layout, summary(destination) + ", the destination",
              "elements of it share memory, so it cannot hold the values",
              "give a destination in which every element has memory of its own");
}

void refuse_repacking(const TensorRef& destination, const TensorRef& source) {
  const bool packed = info(destination.dtype).elements_per_item > 1 || info(source.dtype).elements_per_item > 1;
  if (packed && destination.dtype != source.dtype) {
    throw Error(ErrorKind::dtype, summary(source) + " and " + summary(destination),
                "packed elements go to and from a device as they are",
                "transfer them with the same dtype, and convert in host memory");
  }
  if (destination.layout.shape == source.layout.shape) return;
  throw Error(ErrorKind::layout, summary(source) + " and " + summary(destination), "their shapes differ",
              "give a destination of the same shape");
}

Error no_stream() {
  return {ErrorKind::device, "a device tensor without a stream",
          "NULL does not say which default stream is meant, and the order of the copy depends on it",
          "give the stream that the tensor's value is ordered in"};
}

Error too_many_pieces(const TensorRef& tensor, std::size_t most) {
  return {ErrorKind::layout, summary(tensor) + " on a device",
          "its elements lie so that a copy would take more than " + std::to_string(most) + " pieces",
          "call .contiguous() on it first, which packs it on the device"};
}

Error no_kernel_for(const TensorRef& tensor) {
  return {ErrorKind::layout, summary(tensor) + " on a device, to be cast or packed there",
          "no kernel takes it: kernels are not there, its elements are not aligned, or it has too many axes",
          "convert it in its own library first, or copy it as it is and convert it in host memory"};
}

Error too_sparse(const TensorRef& tensor) {
  return {ErrorKind::layout, summary(tensor) + " on a device",
          "its elements lie too far apart to be copied together, and are too many to be copied one by one",
          "call .contiguous() on it first, which packs it on the device"};
}

Error no_snapshot_of(const TensorRef& tensor, std::size_t nbytes, std::size_t most) {
  return {ErrorKind::device, summary(tensor) + " with a snapshot",
          "its " + std::to_string(nbytes) + " bytes are more than the " + std::to_string(most) +
              " that a snapshot may take",
          "copy it without a snapshot, or in parts"};
}

Error no_staging(int device) {
  return {ErrorKind::device, "a snapshot on device " + std::to_string(device),
          "there is no device memory for staging, or it cannot be taken now", "copy it without a snapshot"};
}

Error nothing_free(std::size_t nbytes) {
  return {ErrorKind::device, "a snapshot of " + std::to_string(nbytes) + " bytes",
          "all staging memory, or every place in the copy queue, is in use by copies that are not done",
          "wait for earlier transfers first, or let the call wait (back pressure \"wait\")"};
}

Error no_pinned_memory(std::size_t nbytes) {
  return {ErrorKind::device, "a transfer through pinned memory",
          "the driver locks no " + std::to_string(nbytes) + " bytes of host memory",
          "raise the limit of locked memory (ulimit -l), or see `tensorferry doctor`"};
}

}  // namespace ferry
