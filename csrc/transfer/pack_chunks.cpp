#include "transfer/pack_chunks.hpp"

#include <algorithm>
#include <utility>

#include "transfer/ordered_layouts.hpp"

namespace ferry {
namespace {

class Cutter {
 public:
  Cutter(std::int64_t itemsize, std::int64_t most_nbytes, Repeated repeated) noexcept
      : itemsize_(itemsize), most_nbytes_(most_nbytes), repeated_(repeated) {}

  void cut(const OrderedLayouts& part, int axis) {
    Layout once = part.device;
    for (int i = 0; i < once.ndim(); ++i) {
      if (once.strides[i] == 0 && repeated_ == Repeated::once) once.shape[i] = 1;
    }
    const std::int64_t whole = element_count(once.shape).value_or(0) * itemsize_;
    while (axis < once.ndim() && once.shape[axis] == 1) ++axis;
    if (whole <= most_nbytes_ || axis == once.ndim()) {
      add(part, once, whole);
      return;
    }
    const std::int64_t extent = once.shape[axis];
    const std::int64_t fit = std::max<std::int64_t>(most_nbytes_ / (whole / extent), 1);
    for (std::int64_t first = 0; first < extent; first += fit) {
      cut(part.slice(axis, first, std::min(fit, extent - first)), axis);
    }
  }

  [[nodiscard]] std::vector<PackChunk> take() noexcept { return std::move(chunks_); }

 private:
  void add(const OrderedLayouts& part, const Layout& once, std::int64_t nbytes) {
    PackChunk chunk;
    chunk.device_offset = part.device_offset;
    chunk.host_offset = part.host_offset;
    chunk.device = once;
    chunk.packed = {once.shape, contiguous_strides(once.shape, itemsize_), itemsize_};
    chunk.landing = {part.device.shape, chunk.packed.strides, itemsize_};
    for (int i = 0; i < once.ndim(); ++i) {
      if (part.device.strides[i] == 0 && repeated_ == Repeated::once) chunk.landing.strides[i] = 0;
    }
    chunk.host = part.host;
    chunk.nbytes = nbytes;
    chunks_.push_back(std::move(chunk));
  }

  std::int64_t itemsize_;
  std::int64_t most_nbytes_;
  Repeated repeated_;
  std::vector<PackChunk> chunks_;
};

}  // namespace

std::vector<PackChunk> pack_chunks(const Layout& device, const Layout& host, std::int64_t itemsize,
                                   std::int64_t most_nbytes, Repeated repeated) {
  if (element_count(device.shape).value_or(0) == 0) return {};
  Cutter cutter(itemsize, most_nbytes, repeated);
  cutter.cut(ordered_layouts(device, host, OrderedBy::host), 0);
  return cutter.take();
}

// The same with its ends exchanged, but in the order of what is packed.
std::vector<UnpackChunk> unpack_chunks(const Layout& host, const Layout& device, std::int64_t itemsize,
                                       std::int64_t most_nbytes) {
  if (element_count(host.shape).value_or(0) == 0) return {};
  Cutter cutter(itemsize, most_nbytes, Repeated::once);
  cutter.cut(ordered_layouts(host, device, OrderedBy::device), 0);
  std::vector<UnpackChunk> chunks;
  for (const PackChunk& part : cutter.take()) {
    chunks.push_back(
        {part.device_offset, part.host_offset, part.device, part.packed, part.landing, part.host, part.nbytes});
  }
  return chunks;
}

}  // namespace ferry
