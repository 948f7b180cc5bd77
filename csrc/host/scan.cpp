#include "host/scan.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <string>

#include "core/error.hpp"
#include "host/logical_shape.hpp"
#include "host/panels.hpp"
#include "host/parallel.hpp"
#include "host/scan_question.hpp"
#include "host/walk.hpp"

namespace ferry {
namespace {

constexpr std::int64_t piece_nbytes = 256 * 1024;  // what a thread takes at a time
constexpr std::int64_t short_row = 16;

// The extents of the elements that lie in memory: an axis along which they repeat counts once.
Extents distinct_shape(const Layout& layout) noexcept {
  Extents shape = layout.shape;
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (layout.strides[axis] == 0) shape[axis] = 1;
  }
  return shape;
}

// The flat index in `shape` of the item that has the flat index `flat` in `distinct`.
std::int64_t flat_in(const Extents& shape, const Extents& distinct, std::int64_t flat) noexcept {
  std::int64_t result = 0;
  std::int64_t step = 1;
  for (int axis = shape.size() - 1; axis >= 0; --axis) {
    result += flat % distinct[axis] * step;
    flat /= distinct[axis];
    step *= shape[axis];
  }
  return result;
}

std::int64_t count_in_panel(const PanelPlan& plan, const Panel& panel, const ScanQuestion& question) noexcept {
  struct Axis {
    std::int64_t extent;
    std::int64_t step;
  };
  Axis row{panel.inner, plan.inner.from_step};
  Axis outer{panel.outer, plan.outer.from_step};
  Axis deep{panel.deep, plan.deep.from_step};
  if (row.extent < short_row && outer.extent > row.extent) std::swap(row, outer);
  if (row.extent < short_row && deep.extent > row.extent) std::swap(row, deep);
  std::int64_t found = 0;
  for (std::int64_t d = 0; d < deep.extent; ++d) {
    for (std::int64_t o = 0; o < outer.extent; ++o) {
      found += question.count(panel.from + d * deep.step + o * outer.step, row.step, row.extent);
    }
  }
  return found;
}

struct Tally {
  std::int64_t count = 0;
  std::int64_t first_panel = 0;  // none of the panels before this one has any
};

// In the order of memory.
Tally count_all(const PanelPlan& plan, const ScanQuestion& question) {
  const int threads = useful_threads(plan.to_nbytes);
  const std::int64_t wanted = std::max<std::int64_t>(plan.to_nbytes / piece_nbytes, threads);
  const std::int64_t per_piece = std::max<std::int64_t>(plan.panels / wanted, 1);
  std::atomic<std::int64_t> total{0};
  std::atomic<std::int64_t> first{plan.panels};
  parallel_for(threads, (plan.panels + per_piece - 1) / per_piece, [&](std::int64_t piece) noexcept {
    const std::int64_t begin = piece * per_piece;
    std::int64_t found = 0;
    plan.for_each_panel(begin, std::min(begin + per_piece, plan.panels),
                        [&](const Panel& panel) { found += count_in_panel(plan, panel, question); });
    if (found == 0) return;
    total.fetch_add(found, std::memory_order_relaxed);
    std::int64_t known = first.load(std::memory_order_relaxed);
    while (begin < known && !first.compare_exchange_weak(known, begin, std::memory_order_relaxed)) {
    }
  });
  return {total.load(), first.load()};
}

// Of a row in which at least one item answers yes, the position of the first that does.
std::int64_t first_in_row(const std::byte* row, std::int64_t step, std::int64_t count, const ScanQuestion& question) {
  std::int64_t first = 0;
  while (count > 1) {
    const std::int64_t half = count / 2;
    if (question.count(row + first * step, step, half) > 0) {
      count = half;
    } else {
      first += half;
      count -= half;
    }
  }
  return first;
}

struct Found {
  std::int64_t index;
  const std::byte* item;
};

// In C order; the first `known` items of the first row are known to answer no.
Found find_first(const Walk<1>& walk, const ScanQuestion& question, std::int64_t known) {
  constexpr std::int64_t at_once = 4096;
  const std::int64_t step = walk.row_steps()[0];
  Found found{-1, nullptr};
  std::int64_t index = 0;
  walk.for_each_row([&](const auto& rows) {
    for (std::int64_t first = known; first < walk.row_extent(); first += at_once) {
      const std::byte* at = rows[0] + first * step;
      const std::int64_t length = std::min(at_once, walk.row_extent() - first);
      if (question.count(at, step, length) == 0) continue;
      const std::int64_t position = first_in_row(at, step, length, question);
      found = {index + first + position, at + position * step};
      return false;
    }
    known = 0;
    index += walk.row_extent();
    return true;
  });
  return found;
}

// Items that are one block in C order, upwards, are cut into panels in that order.
bool is_one_row(const Walk<1>& walk, const PanelPlan& plan) noexcept {
  return walk.axes().size() == 1 && walk.base()[0] == plan.from && plan.inner.extent == walk.row_extent();
}

ScanReport scan(const TensorRef& tensor, const ScanQuestion& question) {
  const Layout& layout = tensor.layout;
  const Extents shape = distinct_shape(layout);
  const Extents& strides = layout.strides;
  const std::int64_t itemsize = info(tensor.dtype).itemsize;
  const Walk<2> both(shape, {&strides, &strides}, {tensor.data, tensor.data}, WalkOrder::fastest);
  const PanelPlan plan = plan_panels(both, itemsize, itemsize, false, 0);
  const Tally tally = count_all(plan, question);
  if (tally.count == 0) return {};
  const Walk<1> walk(shape, {&strides}, {tensor.data}, WalkOrder::c_order);
  const Found found = find_first(walk, question, is_one_row(walk, plan) ? tally.first_panel * plan.inner_chunk : 0);
  const std::int64_t repeats = element_count(layout.shape).value_or(0) / element_count(shape).value_or(1);
  const std::int64_t first = flat_in(layout.shape, shape, found.index) * info(tensor.dtype).elements_per_item;
  return {tally.count * repeats, first + question.first_in_item(found.item)};
}

}  // namespace

ScanReport scan_nonfinite(const TensorRef& tensor, const Kernels& level) {
  if (element_count(logical_shape(tensor)) == 0) return {};
  const auto question = ScanQuestion::nonfinite(tensor, level);
  return question ? scan(tensor, *question) : ScanReport{};
}

ScanReport scan_outside(const TensorRef& tensor, double low, double high, const Kernels& level) {
  if (info(tensor.dtype).kind == Kind::complex) {
    throw Error(ErrorKind::dtype, "a tensor of dtype " + std::string(info(tensor.dtype).name),
                "complex numbers have no order, so no range holds them", "check its real and imaginary parts");
  }
  if (element_count(logical_shape(tensor)) == 0) return {};
  return scan(tensor, ScanQuestion::outside(tensor, low, high, level));
}

}  // namespace ferry
