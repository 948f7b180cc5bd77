#include "host/copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include "host/carry.hpp"
#include "host/caster.hpp"
#include "host/kernels/kernels.hpp"
#include "host/logical_shape.hpp"
#include "host/packed_runs.hpp"
#include "host/parallel.hpp"
#include "host/row_pass.hpp"
#include "host/walk.hpp"

namespace ferry {
namespace {

bool is_packed(const TensorRef& tensor) noexcept { return info(tensor.dtype).elements_per_item > 1; }

Walk<2> walk_both(const TensorRef& destination, const TensorRef& source, const Extents& shape, WalkOrder order) {
  return Walk<2>(shape, {&destination.layout.strides, &source.layout.strides}, {destination.data, source.data}, order);
}

// One row after the other, block by block; a pair of packed elements never straddles two. With `check`, tells whether
// every value survived.
bool cast_packed(const TensorRef& destination, const TensorRef& source, const Extents& shape, bool check) {
  const Walk<2> walk = walk_both(destination, source, shape, WalkOrder::fastest_keep_last);
  const auto [to_step, from_step] = walk.row_steps();
  Caster caster(destination, source);
  bool survived = true;
  walk.for_each_row([&](const auto& rows) {
    survived &= caster.cast_row(rows[0], to_step, rows[1], from_step, walk.row_extent(), check);
    return true;
  });
  return survived;
}

bool cast(const TensorRef& destination, const TensorRef& source, const Extents& shape, bool check) {
  if (is_packed(destination) || is_packed(source)) return cast_packed(destination, source, shape, check);
  const Walk<2> walk = walk_both(destination, source, shape, WalkOrder::fastest);
  return carry_blocks(walk, destination, source, check);
}

// Does the destination fill one block of memory, by rows too short to be made one by one?
bool fills_block_by_short_rows(const Walk<2>& walk) noexcept {
  constexpr std::int64_t short_row_items = 256;
  const auto& first = walk.axes()[0];
  if (first.steps[0] == 1 && first.steps[1] == 1 && first.extent >= short_row_items) return false;
  std::int64_t last = 0;
  for (const auto& axis : walk.axes()) last += (axis.extent - 1) * axis.steps[0];
  return last + 1 == walk.count();
}

// Makes bytes 0 or 1 where they lie.
void make_booleans(std::byte* bytes, std::int64_t count) {
  constexpr std::int64_t piece_items = 64 * 1024;
  parallel_for(useful_threads(count), (count + piece_items - 1) / piece_items, [=](std::int64_t piece) noexcept {
    std::byte* first = bytes + piece * piece_items;
    const std::int64_t length = std::min(piece_items, count - piece * piece_items);
    constexpr std::uint64_t largest = 1;
    if (kernels().beyond[0](first, length, 0, largest) == 0) return;  // as torch and NumPy keep them
    for (std::int64_t i = 0; i < length; ++i) first[i] = std::byte{first[i] != std::byte{0}};
  });
}

// Items as they are: packed elements stay packed.
void carry(const TensorRef& destination, const TensorRef& source, const RowPass& pass) {
  const Walk<2> walk = walk_both(destination, source, source.layout.shape, WalkOrder::fastest);
  if (pass.row == kernels().move_booleans && fills_block_by_short_rows(walk)) {
    carry_rows(walk, {kernels().move[0], true, true}, 1, 1);
    make_booleans(walk.base()[0], walk.count());
  } else if (pass.bits_move || !carry_packed(walk, info(destination.dtype).itemsize, info(source.dtype).itemsize,
                                             [&] { return pass.row; })) {
    carry_rows(walk, pass, info(destination.dtype).itemsize, info(source.dtype).itemsize);
  }
}

// The C-order flat index of the first value that does not survive.
std::int64_t first_change(const TensorRef& destination, const TensorRef& source, const Extents& shape) {
  const bool packed = is_packed(destination) || is_packed(source);
  const Walk<1> walk(shape, {&source.layout.strides}, {source.data},
                     packed ? WalkOrder::c_order_keep_last : WalkOrder::c_order);
  const std::int64_t from_step = walk.row_steps()[0];
  const std::int64_t from_per_item = info(source.dtype).elements_per_item;
  const std::int64_t itemsize = info(destination.dtype).itemsize;
  alignas(16) std::array<std::byte, static_cast<std::size_t>(block_elements) * 16U> scratch;
  Caster caster(destination, source);
  std::int64_t index = 0;
  std::int64_t found = -1;
  walk.for_each_row([&](const auto& rows) {
    for_each_block(walk.row_extent(), [&](std::int64_t first, std::int64_t count) {
      if (found >= 0) return;
      const std::byte* block = rows[0] + first / from_per_item * from_step;
      if (caster.cast_row(scratch.data(), itemsize, block, from_step, count, true)) return;
      caster.cast(scratch.data(), itemsize, block, from_step, count);
      const std::int64_t change = caster.first_change(scratch.data(), itemsize, count);
      if (change >= 0) found = index + first + change;
    });
    index += walk.row_extent();
    return found < 0;
  });
  return found;
}

}  // namespace

void copy(const TensorRef& destination, const TensorRef& source) {
  const Extents shape = common_shape(destination, source);
  if (element_count(shape) == 0) return;
  if (const RowPass pass = row_pass(destination, source); pass.row != nullptr) {
    carry(destination, source, pass);
  } else {
    cast(destination, source, shape, false);
  }
}

std::optional<Mismatch> copy_same_value(const TensorRef& destination, const TensorRef& source) {
  const Extents shape = common_shape(destination, source);
  if (element_count(shape) == 0) return std::nullopt;
  if (const RowPass pass = row_pass(destination, source); pass.row != nullptr && pass.same_dtype) {
    carry(destination, source, pass);
    return std::nullopt;
  }
  if (cast(destination, source, shape, true)) return std::nullopt;
  return Mismatch{first_change(destination, source, shape)};
}

}  // namespace ferry
