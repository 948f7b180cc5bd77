#include "transfer/pack_chunks.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace ferry {
namespace {

// Both layouts with their axes in the order of host memory, slowest first, all forwards there; axes of one element are
// dropped.
struct Ordered {
  Layout device;
  Layout host;
  std::int64_t device_offset = 0;
  std::int64_t host_offset = 0;
};

Ordered ordered(const Layout& device, const Layout& host) {
  std::array<int, max_ndim> axes;
  int count = 0;
  for (int i = 0; i < host.ndim(); ++i) {
    if (host.shape[i] != 1) axes[static_cast<std::size_t>(count++)] = i;
  }
  std::stable_sort(axes.begin(), axes.begin() + count,
                   [&](int a, int b) { return std::abs(host.strides[a]) > std::abs(host.strides[b]); });
  Ordered result{{Extents(count), Extents(count), device.itemsize}, {Extents(count), Extents(count), host.itemsize}};
  for (int i = 0; i < count; ++i) {
    const int axis = axes[static_cast<std::size_t>(i)];
    const bool backwards = host.strides[axis] < 0;
    const std::int64_t last = host.shape[axis] - 1;
    result.device.shape[i] = result.host.shape[i] = host.shape[axis];
    result.device.strides[i] = backwards ? -device.strides[axis] : device.strides[axis];
    result.host.strides[i] = backwards ? -host.strides[axis] : host.strides[axis];
    if (!backwards) continue;
    result.device_offset += last * device.strides[axis];
    result.host_offset += last * host.strides[axis];
  }
  return result;
}

class Cutter {
 public:
  Cutter(std::int64_t itemsize, std::int64_t most_nbytes, Repeated repeated) noexcept
      : itemsize_(itemsize), most_nbytes_(most_nbytes), repeated_(repeated) {}

  void cut(const Ordered& part, int axis) {
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
      Ordered slice = part;
      slice.device_offset += first * part.device.strides[axis];
      slice.host_offset += first * part.host.strides[axis];
      slice.device.shape[axis] = slice.host.shape[axis] = std::min(fit, extent - first);
      cut(slice, axis);
    }
  }

  [[nodiscard]] std::vector<PackChunk> take() noexcept { return std::move(chunks_); }

 private:
  void add(const Ordered& part, const Layout& once, std::int64_t nbytes) {
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
  cutter.cut(ordered(device, host), 0);
  return cutter.take();
}

}  // namespace ferry
