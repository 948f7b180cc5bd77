// Copies rows of bytes, 16 at a time where both ends are aligned.
#include "kernels/memory.cuh"
#include "kernels/rows.hpp"
#include "kernels/work.cuh"

namespace ferry::gpu {
namespace {

struct RowWindow {
  Address to;
  Address from;
  std::uint64_t window;
};

template <class Index>
FERRY_DEVICE RowWindow window_at(const RowArgs& args, Index item) {
  std::uint64_t row;
  if constexpr (sizeof(Index) == 4) {
    row = args.by_few_items.quotient(item);
  } else {
    row = args.by_items.quotient(item);
  }
  const std::uint64_t window = item - row * args.by_items.divisor;
  return {args.to + row * static_cast<std::uint64_t>(args.to_pitch),
          args.from + row * static_cast<std::uint64_t>(args.from_pitch), window};
}

// Both ends of every row are aligned: all loads of a round are under way before its first store.
template <class Index>
FERRY_DEVICE void copy_aligned(const RowArgs& args) {
  const auto items = static_cast<Index>(args.rows * args.by_items.divisor);
  const auto step = item_step<Index>();
  for (auto first = first_item<Index>(); first < items; first += items_at_once * step) {
    Bits128 values[items_at_once];
    RowWindow windows[items_at_once];
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < items_at_once; ++i) {
      const Index item = first + i * step;
      if (item >= items) continue;
      windows[i] = window_at<Index>(args, item);
      const std::uint64_t at = windows[i].window * 16;
      if (at + 16 <= args.width) values[i] = load<Bits128>(windows[i].from + at);
    }
    FERRY_UNROLL
    for (std::uint32_t i = 0; i < items_at_once; ++i) {
      if (first + i * step >= items) continue;
      const std::uint64_t at = windows[i].window * 16;
      if (at + 16 <= args.width) {
        store(windows[i].to + at, values[i]);
      } else {
        copy_part(windows[i].to + at, windows[i].from + at, static_cast<std::uint32_t>(args.width - at));
      }
    }
  }
}

template <class Index>
FERRY_DEVICE void copy_any(const RowArgs& args) {
  const auto items = static_cast<Index>(args.rows * args.by_items.divisor);
  for (auto item = first_item<Index>(); item < items; item += item_step<Index>()) {
    const RowWindow at = window_at<Index>(args, item);
    copy_window(at.to, at.from, args.width, at.window);
  }
}

}  // namespace

FERRY_KERNEL(512) ferry_rows(const RowArgs args) {
  if (args.wide != 0U) {
    args.aligned != 0U ? copy_aligned<std::uint64_t>(args) : copy_any<std::uint64_t>(args);
  } else {
    args.aligned != 0U ? copy_aligned<std::uint32_t>(args) : copy_any<std::uint32_t>(args);
  }
}

}  // namespace ferry::gpu
