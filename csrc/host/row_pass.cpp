#include "host/row_pass.hpp"

#include <bit>

namespace ferry {
namespace {

bool is_marked(const TensorRef& tensor) noexcept { return tensor.conjugated || tensor.negated || tensor.byte_swapped; }

RowPass same_dtype(const TensorRef& destination, const TensorRef& source) noexcept {
  const DTypeInfo& type = info(source.dtype);
  const bool complex = type.kind == Kind::complex;
  const bool negates = destination.negated != source.negated;
  const bool conjugates = complex && destination.conjugated != source.conjugated;
  const bool swaps = destination.byte_swapped != source.byte_swapped && type.itemsize > 1;
  const Kernels& k = kernels();
  if (negates || conjugates) {
    if (swaps || (destination.byte_swapped && type.itemsize > 1)) return {};
    return {k.flip(source.dtype, conjugates, negates), false, true};
  }
  if (source.dtype == DType::bool_) return {k.move_booleans, false, true};
  // A byte that holds a narrower value keeps nothing else.
  if (type.value_bits * type.elements_per_item < type.itemsize * 8) return {};
  const auto size = static_cast<std::size_t>(std::countr_zero(type.itemsize));
  if (!swaps) return {k.move[type.itemsize - 1U], true, true};
  return {complex ? k.complex_swap[size] : k.swap[size], false, true};
}

}  // namespace

RowPass row_pass(const TensorRef& destination, const TensorRef& source) noexcept {
  if (destination.dtype == source.dtype) return same_dtype(destination, source);
  if (is_marked(destination) || is_marked(source)) return {};
  return {kernels().cast(destination.dtype, source.dtype), false, false};
}

}  // namespace ferry
