#include "host/carry.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "host/cache_size.hpp"
#include "host/caster.hpp"
#include "host/packed_runs.hpp"
#include "host/panels.hpp"
#include "host/parallel.hpp"
#include "host/row_maker.hpp"

namespace ferry {
namespace {

constexpr std::int64_t one_row_nbytes = 256 * 1024;  // nothing to plan below this
constexpr std::int64_t piece_nbytes = 256 * 1024;    // what a thread takes at a time
constexpr std::int64_t panel_nbytes = 64 * 1024;     // of a transposed panel
constexpr std::int64_t scratch_nbytes = 96 * 1024;   // the same with padding
constexpr std::int64_t small_transpose_nbytes = 128 * 1024;
constexpr std::int64_t streamed_nbytes = 256;  // shorter runs would be all head and tail

std::size_t log2_of(std::int64_t itemsize) noexcept {
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(itemsize)));
}

template <class Body>
void for_each_piece(const PanelPlan& plan, Body&& body) {
  const std::int64_t nbytes = std::max(plan.to_nbytes, plan.to_nbytes / plan.to_itemsize * plan.from_itemsize);
  const int threads = useful_threads(nbytes);
  if (threads == 1) {
    body(std::int64_t{0}, plan.panels);
    return;
  }
  const std::int64_t wanted = std::max<std::int64_t>(nbytes / piece_nbytes, threads);
  const std::int64_t per_piece = std::max<std::int64_t>(plan.panels / wanted, 1);
  const std::int64_t pieces = (plan.panels + per_piece - 1) / per_piece;
  parallel_for(threads, pieces, [&](std::int64_t piece) noexcept {
    const std::int64_t first = piece * per_piece;
    body(first, std::min(first + per_piece, plan.panels));
  });
}

// Rows of so many bytes are an odd number of lines apart: they must not fall into few sets of the cache.
std::int64_t padded(std::int64_t nbytes) noexcept {
  return ((nbytes + line_nbytes - 1) / line_nbytes | 1) * line_nbytes;
}

// What is transposed: columns of the destination, each in one piece.
struct Columns {
  const std::byte* first;
  std::int64_t step;
  std::int64_t count;
};

// Those of a group are brought together in `packed`.
Columns columns_of(const PanelPlan& plan, const Panel& panel, std::byte* packed) noexcept {
  PairAxis along = plan.group;
  if (along.extent == 1) return {panel.from, plan.inner.from_step, panel.inner};
  PairAxis across = plan.inner;
  across.extent = panel.inner;
  const std::int64_t nbytes = panel.outer * plan.from_itemsize;
  const std::int64_t step = nbytes % (2 * line_nbytes) == 0 ? nbytes + line_nbytes : nbytes;
  const Columns columns{packed, step, across.extent * along.extent};
  along.to_step = step;
  across.to_step = step * along.extent;
  if (across.extent > along.extent) std::swap(across, along);
  for (std::int64_t a = 0; a < across.extent; ++a) {
    std::byte* to = packed + a * across.to_step;
    const std::byte* from = panel.from + a * across.from_step;
    if (nbytes <= static_cast<std::int64_t>(longest_item_nbytes)) {
      kernels().move[static_cast<std::size_t>(nbytes - 1)](to, along.to_step, from, along.from_step, along.extent);
    } else {
      kernels().copy_rows(to, along.to_step, from, along.from_step, along.extent, nbytes);
    }
  }
  return columns;
}

// Rows of the destination are gathered in the scratch, then made from it.
template <class Row>
void by_transpose(const PanelPlan& plan, const Panel& panel, Transpose transpose, const Columns& columns,
                  std::byte* scratch, Row&& row) {
  const std::int64_t stride = padded(columns.count * plan.from_itemsize);
  transpose(scratch, stride, columns.first, columns.step, panel.outer, columns.count);
  for (std::int64_t o = 0; o < panel.outer; ++o) {
    row(panel.to + o * plan.outer.to_step, plan.to_itemsize, scratch + o * stride, plan.from_itemsize, columns.count);
  }
}

// Columns of the destination are made in the scratch, then transposed from it.
template <class Row>
void by_columns(const PanelPlan& plan, const Panel& panel, std::byte* scratch, Row&& row) {
  const std::int64_t stride = padded(panel.outer * plan.to_itemsize);
  for (std::int64_t i = 0; i < panel.inner; ++i) {
    row(scratch + i * stride, plan.to_itemsize, panel.from + i * plan.inner.from_step, plan.from_itemsize, panel.outer);
  }
  kernels().transpose[log2_of(plan.to_itemsize)](panel.to, plan.outer.to_step, scratch, stride, panel.outer,
                                                 panel.inner);
}

std::atomic<std::int64_t>& stream_threshold() noexcept {
  static std::atomic<std::int64_t> threshold{std::max<std::int64_t>(last_cache_nbytes() / 4 * 3, 4 << 20)};
  return threshold;
}

std::int64_t longest_run_nbytes(const PanelPlan& plan) noexcept {
  const std::int64_t run = plan.group.extent * plan.to_itemsize;
  return plan.inner.to_step == run ? plan.inner_chunk * run : 0;
}

// Does every row of the destination begin with a cache line?
bool rows_begin_lines(const PanelPlan& plan) noexcept {
  bool aligned = reinterpret_cast<std::uintptr_t>(plan.to) % line_nbytes == 0 && plan.outer.to_step % line_nbytes == 0;
  for (std::size_t axis = 0; axis < plan.rest_size; ++axis) aligned &= plan.rest[axis].to_step % line_nbytes == 0;
  return aligned;
}

void transpose_panels(const PanelPlan& plan, Transpose transpose) {
  for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
    Scratch<scratch_nbytes> packed;
    plan.for_each_panel(begin, end, [&](const Panel& panel) {
      const Columns columns = columns_of(plan, panel, packed.data());
      transpose(panel.to, plan.outer.to_step, columns.first, columns.step, panel.outer, columns.count);
    });
    stream_fence();
  });
}

// Do the lines of a panel's rows stay in the first cache until they are full? Rows a power of two apart share few sets.
bool rows_stay_cached(const PanelPlan& plan) noexcept {
  constexpr std::int64_t way_nbytes = 4096;
  constexpr std::int64_t ways = 8;
  const std::int64_t apart = std::max(std::gcd(plan.outer.to_step, way_nbytes), line_nbytes);
  return plan.outer_chunk * apart <= ways * way_nbytes;
}

// Straight to the destination where that writes whole lines or stays in caches, else through the scratch. A column that
// is written piecemeal is read before it is written: that costs more than going past the caches costs the reader.
void carry_transposed(PanelPlan& plan, const RowPass& pass) {
  const std::size_t size = log2_of(plan.from_itemsize);
  const bool large = plan.to_nbytes >= stream_threshold_nbytes() / 4;
  const bool grouped = plan.group.extent > 1;
  const bool few = longest_run_nbytes(plan) < 2 * line_nbytes || plan.outer.extent <= 4;
  const bool near = plan.to_nbytes <= small_transpose_nbytes || (!large && rows_stay_cached(plan));
  if (pass.bits_move && (few || near)) return transpose_panels(plan, kernels().transpose[size]);
  if (pass.bits_move && !grouped && large && plan.to_itemsize >= 4 && rows_begin_lines(plan)) {
    plan.cut(512, 4 * line_nbytes / plan.to_itemsize);
    return transpose_panels(plan, kernels().streamed_transpose[size]);
  }
  const RowMaker row(plan, pass, large && longest_run_nbytes(plan) >= streamed_nbytes);
  const Transpose transpose = grouped ? kernels().transpose[size] : kernels().far_transpose[size];
  for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
    Scratch<scratch_nbytes> packed;
    Scratch<scratch_nbytes> scratch;
    plan.for_each_panel(begin, end, [&](const Panel& panel) {
      by_transpose(plan, panel, transpose, columns_of(plan, panel, packed.data()), scratch.data(), row);
    });
    stream_fence();
  });
}

}  // namespace

std::int64_t stream_threshold_nbytes() noexcept { return stream_threshold().load(std::memory_order_relaxed); }

void set_stream_threshold_nbytes(std::int64_t nbytes) noexcept {
  stream_threshold().store(nbytes, std::memory_order_relaxed);
}

void carry_rows(const Walk<2>& walk, const RowPass& pass, std::int64_t to_itemsize, std::int64_t from_itemsize) {
  const auto& first = walk.axes()[0];
  if (walk.axes().size() == 1 && first.extent * std::max(to_itemsize, from_itemsize) < one_row_nbytes) {
    pass.row(walk.base()[0], first.steps[0], walk.base()[1], first.steps[1], first.extent);
    return;
  }
  PanelPlan plan = plan_panels(walk, to_itemsize, from_itemsize, pass.bits_move, panel_nbytes);
  if (plan.path == CopyPath::transpose) {
    carry_transposed(plan, pass);
    return;
  }
  if (plan.path == CopyPath::columns) {
    for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
      Scratch<scratch_nbytes> scratch;
      plan.for_each_panel(begin, end, [&](const Panel& panel) { by_columns(plan, panel, scratch.data(), pass.row); });
    });
    return;
  }
  const bool stream = plan.to_nbytes >= stream_threshold_nbytes() && longest_run_nbytes(plan) >= streamed_nbytes;
  if (!stream && pass.bits_move && has_short_rows(plan)) {
    for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
      plan.for_each_panel(begin, end, [&](const Panel& panel) { by_short_rows(plan, panel); });
    });
    return;
  }
  if (!stream && pass.bits_move && has_short_steps(plan)) {
    for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
      plan.for_each_panel(begin, end, [&](const Panel& panel) { by_short_steps(plan, panel); });
    });
    return;
  }
  const RowMaker row(plan, pass, stream);
  for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
    plan.for_each_panel(begin, end, [&](const Panel& panel) { by_rows(plan, panel, row); });
    if (stream) stream_fence();
  });
}

bool carry_blocks(const Walk<2>& walk, const TensorRef& destination, const TensorRef& source, bool check) {
  const std::int64_t to_itemsize = info(destination.dtype).itemsize;
  const std::int64_t from_itemsize = info(source.dtype).itemsize;
  std::atomic<bool> survived{true};
  const auto make_row = [&] {
    return [&, caster = Caster(destination, source)](std::byte* to, std::int64_t to_step, const std::byte* from,
                                                     std::int64_t from_step, std::int64_t count) mutable {
      if (!caster.cast_row(to, to_step, from, from_step, count, check)) {
        survived.store(false, std::memory_order_relaxed);
      }
    };
  };
  if (carry_packed(walk, to_itemsize, from_itemsize, make_row)) return survived.load();
  const PanelPlan plan = plan_panels(walk, to_itemsize, from_itemsize, false, panel_nbytes);
  for_each_piece(plan, [&](std::int64_t begin, std::int64_t end) noexcept {
    auto row = make_row();
    if (plan.path != CopyPath::transpose) {
      plan.for_each_panel(begin, end, [&](const Panel& panel) { by_rows(plan, panel, row); });
    } else {
      Scratch<scratch_nbytes> packed;
      Scratch<scratch_nbytes> scratch;
      plan.for_each_panel(begin, end, [&](const Panel& panel) {
        by_transpose(plan, panel, kernels().far_transpose[log2_of(from_itemsize)],
                     columns_of(plan, panel, packed.data()), scratch.data(), row);
      });
    }
  });
  return survived.load();
}

}  // namespace ferry
