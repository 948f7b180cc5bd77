#include "host/copy.hpp"

#include <array>
#include <atomic>

#include "host/carry.hpp"
#include "host/caster.hpp"
#include "host/logical_shape.hpp"
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

// Items as they are: packed elements stay packed.
void carry(const TensorRef& destination, const TensorRef& source, const RowPass& pass) {
  carry_rows(walk_both(destination, source, source.layout.shape, WalkOrder::fastest), pass,
             info(destination.dtype).itemsize, info(source.dtype).itemsize);
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
