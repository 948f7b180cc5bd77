// Casts rows of any two dtypes: by kernels where there are some, else one block of carriers at a time.
#pragma once

#include "core/tensor_ref.hpp"
#include "host/block_cast.hpp"
#include "host/chunk_cast.hpp"
#include "host/element_io.hpp"

namespace ferry {

// Not to be shared between threads; the tensors' marks and dtypes count, not their layouts.
class Caster {
 public:
  Caster(const TensorRef& destination, const TensorRef& source) noexcept
      : destination_(destination),
        source_(source),
        to_per_item_(info(destination.dtype).elements_per_item),
        from_per_item_(info(source.dtype).elements_per_item),
        to_io_(element_io(destination.dtype, destination.byte_swapped)),
        from_io_(element_io(source.dtype, source.byte_swapped)),
        cast_(destination.dtype, source.dtype),
        compare_(block_comparison(from_io_.carrier, to_io_.carrier)),
        chunks_(destination, source) {}

  // One block, by carriers.
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

  // A row of any length; `count` is of elements, and steps are from item to item. With `check`, tells whether every
  // value survived.
  bool cast_row(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t count,
                bool check) {
    if (chunks_.is_possible()) return chunks_(to, to_step, from, from_step, count, check);
    bool survived = true;
    for_each_block(count, [&](std::int64_t first, std::int64_t length) {
      std::byte* block = to + first / to_per_item_ * to_step;
      cast(block, to_step, from + first / from_per_item_ * from_step, from_step, length);
      if (check && first_change(block, to_step, length) >= 0) survived = false;
    });
    return survived;
  }

 private:
  const TensorRef& destination_;
  const TensorRef& source_;
  std::int64_t to_per_item_;
  std::int64_t from_per_item_;
  ElementIO to_io_;
  ElementIO from_io_;
  BlockCast cast_;
  CompareBlocks compare_;
  ChunkCast chunks_;
  Block from_block_;
  Block to_block_;
};

}  // namespace ferry
