#include "transfer/ring_chunks.hpp"

#include <algorithm>
#include <utility>

#include "transfer/ordered_layouts.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_moves = 1024;             // of one chunk
constexpr std::int64_t most_hole_factor = 8;         // bytes copied for each byte wanted
constexpr std::int64_t copy_cost_nbytes = 64 << 10;  // what the link could move while a copy is set up
constexpr std::int64_t row_cost_nbytes = 512;        // narrower rows take no less time

std::int64_t nbytes_of(const Layout& layout) { return element_count(layout.shape).value_or(0) * layout.itemsize; }

Layout once_each(const Layout& layout) {
  Layout once = layout;
  for (int i = 0; i < layout.ndim(); ++i) {
    if (layout.strides[i] == 0) once.shape[i] = 1;
  }
  return once;
}

enum class Landing : std::uint8_t { packed, with_holes };

class Cutter {
 public:
  Cutter(std::int64_t most_nbytes, RingWay way, Landing landing) noexcept
      : most_nbytes_(most_nbytes), way_(way), landing_(landing) {}

  // False when a part would take too many moves.
  bool cut(const OrderedLayouts& part, int axis) {
    const Layout once = once_each(part.device);
    const std::int64_t whole = landing_nbytes(once);
    if (whole <= most_nbytes_) return add(part, once, whole);
    while (once.shape[axis] == 1) ++axis;
    const std::int64_t extent = part.device.shape[axis];
    const std::int64_t fit = std::max<std::int64_t>(largest_fit(once, axis), 1);
    for (std::int64_t first = 0; first < extent; first += fit) {
      if (!cut(part.slice(axis, first, std::min(fit, extent - first)), axis)) return false;
    }
    return true;
  }

  [[nodiscard]] std::int64_t cost() const noexcept { return cost_; }
  [[nodiscard]] std::vector<RingChunk> take() noexcept { return std::move(chunks_); }

 private:
  [[nodiscard]] std::int64_t landing_nbytes(const Layout& once) const {
    if (landing_ == Landing::packed) return nbytes_of(once);
    const ByteSpan bytes = span(once);
    return bytes.high - bytes.low;
  }

  [[nodiscard]] std::int64_t largest_fit(Layout once, int axis) const {
    once.shape[axis] = 1;
    const std::int64_t one = landing_nbytes(once);
    if (one > most_nbytes_) return 0;
    once.shape[axis] = 2;
    const std::int64_t step = landing_nbytes(once) - one;
    return (most_nbytes_ - one) / step + 1;
  }

  bool add(const OrderedLayouts& part, const Layout& once, std::int64_t nbytes) {
    RingChunk chunk;
    chunk.device_offset = part.device_offset;
    chunk.host_offset = part.host_offset;
    chunk.device = part.device;
    chunk.host = part.host;
    chunk.landing_nbytes = nbytes;
    Layout landing = once;
    if (landing_ == Landing::packed) {
      landing.strides = contiguous_strides(once.shape, once.itemsize);
      auto moves = way_ == RingWay::to_host ? moves_between(once, landing, most_moves)
                                            : moves_between(landing, once, most_moves);
      if (!moves) return false;
      chunk.moves = std::move(*moves);
    } else {
      chunk.moves = {{0, 0, nbytes, 1, 0, 0}};  // strides are positive here: the first element comes first
    }
    chunk.landing = part.device;
    for (int i = 0; i < part.device.ndim(); ++i) {
      chunk.landing.strides[i] = part.device.strides[i] == 0 ? 0 : landing.strides[i];
    }
    for (const Move& move : chunk.moves) {
      const std::int64_t row = move.rows == 1 ? move.width_nbytes : std::max(move.width_nbytes, row_cost_nbytes);
      cost_ += copy_cost_nbytes + move.rows * row;
    }
    chunks_.push_back(std::move(chunk));
    return true;
  }

  std::int64_t most_nbytes_;
  RingWay way_;
  Landing landing_;
  std::int64_t cost_ = 0;
  std::vector<RingChunk> chunks_;
};

bool is_close_together(const Layout& once) {
  const ByteSpan bytes = span(once);
  return (bytes.high - bytes.low) / most_hole_factor <= nbytes_of(once);
}

}  // namespace

std::optional<std::vector<RingChunk>> ring_chunks(const Layout& device, const Layout& host, std::int64_t most_nbytes,
                                                  RingWay way) {
  if (element_count(device.shape) == 0) return std::vector<RingChunk>{};
  const OrderedLayouts whole = ordered_layouts(device, host, OrderedBy::device);
  Cutter packed(most_nbytes, way, Landing::packed);
  const bool can_pack = packed.cut(whole, 0);
  if (way == RingWay::to_host && is_close_together(once_each(whole.device))) {
    Cutter with_holes(most_nbytes, way, Landing::with_holes);
    if (with_holes.cut(whole, 0) && (!can_pack || with_holes.cost() < packed.cost())) return with_holes.take();
  }
  if (!can_pack) return std::nullopt;
  return packed.take();
}

}  // namespace ferry
