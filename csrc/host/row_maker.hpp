// How the rows of a panel are made, one after the other.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "host/carry.hpp"
#include "host/kernels/kernels.hpp"
#include "host/panels.hpp"
#include "host/row_pass.hpp"

namespace ferry {

inline constexpr std::int64_t line_nbytes = 64;

// Room for what is copied twice: rows of a transposed panel, and casts on their way past the caches.
template <std::int64_t nbytes>
struct Scratch {
  alignas(64) std::array<std::byte, static_cast<std::size_t>(nbytes)> bytes;
  std::byte* data() noexcept { return bytes.data(); }
};

// How one row is made; `stream` sends packed rows past the caches.
class RowMaker {
 public:
  RowMaker(const PanelPlan& plan, const RowPass& pass, bool stream) noexcept
      : row_(pass.row), to_itemsize_(plan.to_itemsize), stream_(stream) {
    if (!pass.bits_move) return;
    bits_move_ = true;
    row_ = kernels().move[static_cast<std::size_t>(plan.to_itemsize - 1)];
  }

  void operator()(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                  std::int64_t count) const noexcept {
    if (!stream_ || to_step != to_itemsize_) {
      row_(to, to_step, from, from_step, count);
    } else if (bits_move_ && from_step == to_itemsize_) {
      kernels().stream_copy(to, from, count * to_itemsize_);
    } else {
      Scratch<streamed_cast_nbytes> scratch;
      const std::int64_t most = streamed_cast_nbytes / to_itemsize_;
      for (std::int64_t first = 0; first < count; first += most) {
        const std::int64_t length = std::min(most, count - first);
        row_(scratch.data(), to_itemsize_, from + first * from_step, from_step, length);
        kernels().stream_copy(to + first * to_itemsize_, scratch.data(), length * to_itemsize_);
      }
    }
  }

 private:
  static constexpr std::int64_t streamed_cast_nbytes = 4096;

  MoveRow row_;
  std::int64_t to_itemsize_;
  bool bits_move_ = false;
  bool stream_;
};

// Fetches rows some time before they are copied: those that end before the processor has seen where they lead.
class RowFetch {
 public:
  explicit RowFetch(const PanelPlan& plan) noexcept
      : row_nbytes_(plan.inner.extent * plan.from_itemsize), step_(plan.outer.from_step) {
    if (plan.to_nbytes < stream_threshold_nbytes() / 4) row_nbytes_ = 0;  // likely to be in a cache
    const bool short_rows = plan.inner.from_step == plan.from_itemsize && row_nbytes_ <= fetched_nbytes;
    if (!short_rows || std::abs(step_) < 2 * row_nbytes_) row_nbytes_ = 0;
    if (row_nbytes_ > 0) step_ *= std::max<std::int64_t>(fetched_nbytes / row_nbytes_, 1);
  }

  void operator()(const std::byte* row) const noexcept {
    for (std::int64_t at = 0; at < row_nbytes_; at += line_nbytes) __builtin_prefetch(row + step_ + at, 0, 2);
  }

 private:
  static constexpr std::int64_t fetched_nbytes = 2048;

  std::int64_t row_nbytes_;  // 0: leave it to the processor
  std::int64_t step_;        // from a row to the one to fetch
};

// Of three axes.
template <class Row>
void by_deep_rows(const PanelPlan& plan, const Panel& panel, Row&& row) {
  PairAxis across = plan.inner;  // the row, and what is next to it
  PairAxis along = plan.deep;
  across.extent = panel.inner;
  along.extent = panel.deep;
  if (across.extent > along.extent) std::swap(across, along);
  PairAxis outer = plan.outer;
  outer.extent = panel.outer;
  const bool is_nearer = outer.extent >= few_items && outer.reach() < along.reach();
  if (is_nearer || (along.extent < few_items && outer.extent > along.extent)) std::swap(outer, along);
  for (std::int64_t o = 0; o < outer.extent; ++o) {
    for (std::int64_t a = 0; a < across.extent; ++a) {
      row(panel.to + o * outer.to_step + a * across.to_step, along.to_step,
          panel.from + o * outer.from_step + a * across.from_step, along.from_step, along.extent);
    }
  }
}

// Along the longest axis, so that rows are long; but rather along the two by which the destination moves least.
template <class Row>
void by_rows(const PanelPlan& plan, const Panel& panel, Row&& row) {
  const PairAxis& inner = plan.inner;
  const PairAxis& outer = plan.outer;
  const bool either = plan.path == CopyPath::steps || plan.path == CopyPath::columns;
  if (panel.deep > 1) {
    by_deep_rows(plan, panel, row);
  } else if (either && panel.outer > panel.inner && panel.inner < few_items) {
    for (std::int64_t i = 0; i < panel.inner; ++i) {
      row(panel.to + i * inner.to_step, outer.to_step, panel.from + i * inner.from_step, outer.from_step, panel.outer);
    }
  } else {
    const RowFetch fetch(plan);
    for (std::int64_t o = 0; o < panel.outer; ++o) {
      fetch(panel.from + o * outer.from_step);
      row(panel.to + o * outer.to_step, inner.to_step, panel.from + o * outer.from_step, inner.from_step, panel.inner);
    }
  }
}

// Do both sides step along rows of few items, of which there are more?
inline bool has_short_steps(const PanelPlan& plan) noexcept {
  constexpr std::int64_t most_items = 32;
  const bool is_word = plan.to_itemsize <= 16 && std::has_single_bit(static_cast<std::uint64_t>(plan.to_itemsize));
  return plan.path == CopyPath::steps && is_word && plan.inner.extent <= most_items &&
         plan.inner.extent < std::max(plan.outer.extent, plan.deep.extent);
}

// Along the inner axis, many rows by one call.
inline void by_short_steps(const PanelPlan& plan, const Panel& panel) noexcept {
  const auto move =
      kernels().move_rows[static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(plan.to_itemsize)))];
  PairAxis rows = plan.outer;
  PairAxis others = plan.deep;
  rows.extent = panel.outer;
  others.extent = panel.deep;
  if (others.extent > rows.extent) std::swap(rows, others);
  for (std::int64_t i = 0; i < others.extent; ++i) {
    move(panel.to + i * others.to_step, rows.to_step, plan.inner.to_step, panel.from + i * others.from_step,
         rows.from_step, plan.inner.from_step, rows.extent, panel.inner);
  }
}

// Are rows contiguous on both sides, and so short that calling for each takes as long as copying it?
inline bool has_short_rows(const PanelPlan& plan) noexcept {
  return plan.path == CopyPath::rows && plan.inner.extent * plan.to_itemsize <= longest_short_row_nbytes;
}

inline void by_short_rows(const PanelPlan& plan, const Panel& panel) noexcept {
  constexpr std::int64_t at_once = 16;
  const PairAxis& outer = plan.outer;
  const std::int64_t nbytes = panel.inner * plan.to_itemsize;
  const RowFetch fetch(plan);
  for (std::int64_t first = 0; first < panel.outer; first += at_once) {
    const std::int64_t rows = std::min(at_once, panel.outer - first);
    const std::byte* from = panel.from + first * outer.from_step;
    for (std::int64_t o = 0; o < rows; ++o) fetch(from + o * outer.from_step);
    kernels().copy_rows(panel.to + first * outer.to_step, outer.to_step, from, outer.from_step, rows, nbytes);
  }
}

}  // namespace ferry
