#include "host/chunk_cast.hpp"

#include <algorithm>
#include <bit>

namespace ferry {
namespace {

MoveRow move_of(std::int64_t itemsize) noexcept { return kernels().move[static_cast<std::size_t>(itemsize) - 1U]; }

}  // namespace

ChunkCast::Marks ChunkCast::marks_of(const TensorRef& tensor) noexcept {
  const DTypeInfo& type = info(tensor.dtype);
  const bool complex = type.kind == Kind::complex;
  Marks marks;
  if (tensor.byte_swapped && type.itemsize > 1) {
    const auto size = static_cast<std::size_t>(std::countr_zero(type.itemsize));
    marks.swap = complex ? kernels().complex_swap[size] : kernels().swap[size];
  }
  const bool conjugated = complex && tensor.conjugated;
  if (conjugated || tensor.negated) {
    marks.flip = kernels().flip(tensor.dtype, conjugated, tensor.negated);
    marks.possible = marks.flip != nullptr;
  }
  return marks;
}

ChunkCast::ChunkCast(const TensorRef& destination, const TensorRef& source) noexcept
    : to_itemsize_(info(destination.dtype).itemsize),
      from_itemsize_(info(source.dtype).itemsize),
      to_marks_(marks_of(destination)),
      from_marks_(marks_of(source)),
      can_change_(destination.dtype != source.dtype),
      check_(destination.dtype, source.dtype) {
  if (!to_marks_.possible || !from_marks_.possible) return;
  // Of equal dtypes only those come here whose items are all value.
  const bool is_whole = info(source.dtype).value_bits == info(source.dtype).itemsize * 8;
  cast_ = can_change_ ? kernels().cast(destination.dtype, source.dtype) : is_whole ? move_of(to_itemsize_) : nullptr;
}

ChunkCast::Row ChunkCast::values_of(Row memory, std::int64_t count, bool packed) noexcept {
  const std::int64_t size = from_itemsize_;
  const auto take = [&](MoveRow row, std::byte* to) {
    row(to, size, memory.at, memory.step, count);
    memory = {to, size};
  };
  if (from_marks_.swap != nullptr && from_marks_.flip != nullptr) {
    take(from_marks_.swap, to_values_.data());
    take(from_marks_.flip, from_values_.data());
  } else if (from_marks_.any()) {
    take(from_marks_.swap != nullptr ? from_marks_.swap : from_marks_.flip, from_values_.data());
  } else if (packed && memory.step != size) {
    take(move_of(size), from_values_.data());
  }
  return memory;
}

// From to_values_, by way of from_values_.
void ChunkCast::put_values(std::byte* to, std::int64_t to_step, std::int64_t count) noexcept {
  const std::int64_t size = to_itemsize_;
  if (to_marks_.swap != nullptr && to_marks_.flip != nullptr) {
    to_marks_.flip(from_values_.data(), size, to_values_.data(), size, count);
    to_marks_.swap(to, to_step, from_values_.data(), size, count);
  } else {
    const MoveRow only = to_marks_.swap != nullptr ? to_marks_.swap : to_marks_.flip;
    (only != nullptr ? only : move_of(size))(to, to_step, to_values_.data(), size, count);
  }
}

bool ChunkCast::operator()(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                           std::int64_t count, bool check) noexcept {
  check = check && can_change_;
  bool survived = true;
  for (std::int64_t first = 0; first < count; first += ValueCheck::most) {
    const std::int64_t length = std::min(ValueCheck::most, count - first);
    std::byte* const out = to + first * to_step;
    const Row values = values_of({from + first * from_step, from_step}, length, check);
    const bool direct = !to_marks_.any() && (!check || to_step == to_itemsize_);
    std::byte* const result = direct ? out : to_values_.data();
    cast_(result, direct ? to_step : to_itemsize_, values.at, values.step, length);
    if (check && survived) survived = check_(result, values.at, length);
    if (!direct) put_values(out, to_step, length);
  }
  return survived;
}

}  // namespace ferry
