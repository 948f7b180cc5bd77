#include "transfer/arrival.hpp"

#include <string>

#include "core/error.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/moves.hpp"
#include "transfer/path_choice.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_moves = 1024;
constexpr std::int64_t most_hole_factor = 8;  // bytes copied for each byte wanted
constexpr std::int64_t fast_row_nbytes = 4096;

std::int64_t element_nbytes(const Layout& layout) { return element_count(layout.shape).value_or(0) * layout.itemsize; }

// One element along every axis that repeats it.
Layout without_repetition(const Layout& layout) {
  Layout once = layout;
  for (int i = 0; i < layout.ndim(); ++i) {
    if (layout.strides[i] == 0 && layout.shape[i] > 1) once.shape[i] = 1;
  }
  return once;
}

// The strides of the whole tensor: those of what was moved, and none where elements repeat.
Extents whole_strides(const Layout& source, const Extents& landing) {
  Extents strides = landing;
  for (int i = 0; i < source.ndim(); ++i) {
    if (source.strides[i] == 0 && source.shape[i] > 1) strides[i] = 0;
  }
  return strides;
}

Arrival block(const Layout& source, const Layout& once) {
  const ByteSpan bytes = span(once);
  Arrival arrival;
  arrival.as_block = true;
  arrival.nbytes = bytes.high - bytes.low;
  arrival.moved = {Extents{arrival.nbytes}, Extents{1}, 1};
  arrival.source_offset = bytes.low;
  arrival.landing_strides = Extents{1};
  arrival.strides = whole_strides(source, once.strides);
  arrival.data_offset = -bytes.low;
  return arrival;
}

Arrival packed(const Layout& source, const Layout& once) {
  Arrival arrival;
  arrival.nbytes = element_nbytes(once);
  arrival.moved = once;
  arrival.landing_strides = packed_strides(once, Order::keep, once.itemsize);
  arrival.strides = whole_strides(source, arrival.landing_strides);
  return arrival;
}

}  // namespace

Arrival arrival_of(const Layout& source, bool producer_packs, bool host_waits) {
  const Layout once = without_repetition(source);
  const ByteSpan bytes = span(once);
  const std::int64_t span_nbytes = bytes.high - bytes.low;
  const std::int64_t nbytes = element_nbytes(once);
  if (span_nbytes <= nbytes) return block(source, once);
  Arrival arrival = packed(source, once);
  const bool goes_by_rows = host_waits && has_wide_rows(once, fast_row_nbytes);
  if (producer_packs && !goes_by_rows) {
    arrival.packs = true;
    return arrival;
  }
  const Layout landing{once.shape, arrival.landing_strides, once.itemsize};
  if (moves_between(once, landing, most_moves)) return arrival;
  if (span_nbytes / most_hole_factor <= nbytes) return block(source, once);
  throw Error(ErrorKind::layout, "a tensor on a device whose elements lie far apart",
              "without packing on the device it would take more than " + std::to_string(most_moves) + " copies, or " +
                  std::to_string(span_nbytes) + " bytes for " + std::to_string(nbytes),
              "make it contiguous in its own library first");
}

std::optional<Arrival> arrival_by_kernel(const Layout& source, const KernelWish& wish) {
  const Layout once = without_repetition(source);
  const std::int64_t count = element_count(once.shape).value_or(0);
  if (count == 0) return std::nullopt;
  const bool casts = wish.from != wish.to;
  // What repeats has steps of 0, and is in no order before the host has written it out.
  const bool repeats = !(once.shape == source.shape);
  const Order order = repeats ? Order::keep : wish.order;
  const ByteSpan bytes = span(once);
  const bool is_block = bytes.high - bytes.low <= element_nbytes(once);
  if (!casts && is_block && satisfies(once, order)) return std::nullopt;
  const auto itemsize = casts ? std::int64_t{info(wish.to).itemsize} : once.itemsize;
  const Layout landing{once.shape, packed_strides(once, order, itemsize), itemsize};
  if (!casts && wish.host_waits) {
    const auto moves = moves_between(once, landing, 1);
    if (moves && moves->size() == 1 && has_wide_rows(once, wish.rows_from)) return std::nullopt;
  }
  if (!kernels_can_copy(landing, wish.to, once, wish.from)) return std::nullopt;
  Arrival arrival;
  arrival.by_kernel = true;
  arrival.from = wish.from;
  arrival.to = wish.to;
  arrival.nbytes = count * itemsize;
  arrival.moved = once;
  arrival.landing_strides = landing.strides;
  arrival.strides = whole_strides(source, landing.strides);
  return arrival;
}

}  // namespace ferry
