#include "host/copy.hpp"

#include <array>

#include "host/block_cast.hpp"
#include "host/direct_row.hpp"
#include "host/element_io.hpp"
#include "host/logical_shape.hpp"
#include "host/move_row.hpp"
#include "host/walk.hpp"

namespace ferry {
namespace {

bool is_packed(const TensorRef& tensor) noexcept { return info(tensor.dtype).elements_per_item > 1; }

// The row mover with which the bits alone make the copy, or null.
MoveRow mover(const TensorRef& destination, const TensorRef& source) noexcept {
  if (destination.dtype != source.dtype || destination.negated != source.negated) return nullptr;
  const bool complex = info(source.dtype).kind == Kind::complex;
  if (complex && destination.conjugated != source.conjugated) return nullptr;
  return row_mover(source.dtype, destination.byte_swapped != source.byte_swapped);
}

// The one loop that makes the cast, or null: it takes what memory holds for the value.
DirectRow direct(const TensorRef& destination, const TensorRef& source) noexcept {
  const auto marked = [](const TensorRef& t) { return t.conjugated || t.negated || t.byte_swapped; };
  if (marked(destination) || marked(source)) return nullptr;
  return direct_row(destination.dtype, source.dtype);
}

// With a row mover or a direct row.
void by_rows(const TensorRef& destination, const TensorRef& source, MoveRow row) {
  const Walk<2> walk(source.layout.shape, {&destination.layout.strides, &source.layout.strides},
                     {destination.data, source.data}, WalkOrder::fastest);
  const auto [to_step, from_step] = walk.row_steps();
  walk.for_each_row([&](const auto& rows) {
    row(rows[0], to_step, rows[1], from_step, walk.row_extent());
    return true;
  });
}

// Casts one block at a time.
class Caster {
 public:
  Caster(const TensorRef& destination, const TensorRef& source) noexcept
      : destination_(destination),
        source_(source),
        to_io_(element_io(destination.dtype, destination.byte_swapped)),
        from_io_(element_io(source.dtype, source.byte_swapped)),
        cast_(destination.dtype, source.dtype),
        compare_(block_comparison(from_io_.carrier, to_io_.carrier)) {}

  void cast(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t count) {
    from_io_.load(from, from_step, count, from_block_);
    apply_bits(source_, from_block_, count);
    cast_(from_block_, to_block_, count);
    apply_bits(destination_, to_block_, count);
    to_io_.store(to, to_step, count, to_block_);
  }

  // Position of the first element of the block just cast to `to` that differs from what was loaded, or -1.
  std::int64_t first_change(const std::byte* to, std::int64_t to_step, std::int64_t count) {
    to_io_.load(to, to_step, count, to_block_);
    apply_bits(destination_, to_block_, count);
    return compare_(from_block_, to_block_, count);
  }

 private:
  const TensorRef& destination_;
  const TensorRef& source_;
  ElementIO to_io_;
  ElementIO from_io_;
  BlockCast cast_;
  CompareBlocks compare_;
  Block from_block_;
  Block to_block_;
};

// With `check`, tells whether every value survived.
bool cast(const TensorRef& destination, const TensorRef& source, const Extents& shape, bool check) {
  const bool packed = is_packed(destination) || is_packed(source);
  const Walk<2> walk(shape, {&destination.layout.strides, &source.layout.strides}, {destination.data, source.data},
                     packed ? WalkOrder::fastest_keep_last : WalkOrder::fastest);
  const auto [to_step, from_step] = walk.row_steps();
  const std::int64_t to_per_item = info(destination.dtype).elements_per_item;
  const std::int64_t from_per_item = info(source.dtype).elements_per_item;
  Caster caster(destination, source);
  bool survived = true;
  walk.for_each_row([&](const auto& rows) {
    for_each_block(walk.row_extent(), [&](std::int64_t first, std::int64_t count) {
      std::byte* to = rows[0] + first / to_per_item * to_step;
      caster.cast(to, to_step, rows[1] + first / from_per_item * from_step, from_step, count);
      if (check && caster.first_change(to, to_step, count) >= 0) survived = false;
    });
    return true;
  });
  return survived;
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
      caster.cast(scratch.data(), itemsize, rows[0] + first / from_per_item * from_step, from_step, count);
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
  if (const MoveRow move_row = mover(destination, source)) {
    by_rows(destination, source, move_row);
  } else if (const DirectRow cast_row = direct(destination, source)) {
    by_rows(destination, source, cast_row);
  } else {
    cast(destination, source, shape, false);
  }
}

std::optional<Mismatch> copy_same_value(const TensorRef& destination, const TensorRef& source) {
  const Extents shape = common_shape(destination, source);
  if (element_count(shape) == 0) return std::nullopt;
  if (const MoveRow move_row = mover(destination, source)) {
    by_rows(destination, source, move_row);
    return std::nullopt;
  }
  if (cast(destination, source, shape, true)) return std::nullopt;
  return Mismatch{first_change(destination, source, shape)};
}

}  // namespace ferry
