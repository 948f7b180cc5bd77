#include "transfer/ring_packing.hpp"

#include <limits>

#include "transfer/device_tensor.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/moves.hpp"
#include "transfer/pack_chunks.hpp"
#include "transfer/path_choice.hpp"

namespace ferry {
namespace {

constexpr std::int64_t all_at_once = std::numeric_limits<std::int64_t>::max();

bool is_aligned_for_cast(const TensorRef& ref) {
  const std::int64_t unit = cast_alignment(ref.dtype);
  for (int i = 0; i < ref.layout.ndim(); ++i) {
    if (ref.layout.shape[i] > 1 && ref.layout.strides[i] % unit != 0) return false;
  }
  return device_address(ref.data) % static_cast<cuda::CUdeviceptr>(unit) == 0;
}

// Values that become smaller, or no larger, are cast before the link, others behind it.
DType dtype_over_the_link(const TensorRef& source, const TensorRef& destination) {
  const bool casts = source.dtype != destination.dtype && kernels_can_cast(source.dtype, destination.dtype) &&
                     info(destination.dtype).itemsize <= info(source.dtype).itemsize;
  return casts && is_aligned_for_cast(source) ? destination.dtype : source.dtype;
}

// Does the copy engine alone bring it to the host in the destination's order?
bool needs_no_kernel(const PackChunk& whole, std::int64_t rows_from) {
  const auto moves = moves_between(whole.device, whole.packed, 1);
  if (!moves || moves->size() != 1) return false;
  const Move& move = moves->front();
  return move.rows == 1 || has_wide_rows({{move.rows, move.width_nbytes}, {move.source_pitch, 1}, 1}, rows_from);
}

}  // namespace

std::optional<RingPacking> ring_packing(const TensorRef& source, const TensorRef& destination,
                                        const LinkFigures& link) {
  if (element_count(source.layout.shape).value_or(0) == 0) return std::nullopt;
  const DType dtype = dtype_over_the_link(source, destination);
  const PackChunk whole =
      pack_chunks(source.layout, destination.layout, info(dtype).itemsize, all_at_once, Repeated::once).front();
  if (dtype == source.dtype && needs_no_kernel(whole, link.rows_from)) return std::nullopt;
  if (!kernels_can_copy(whole.packed, dtype, whole.device, source.dtype)) return std::nullopt;
  return RingPacking{dtype};
}

std::size_t packed_parts(const TensorRef& source, const TensorRef& destination, DType dtype, std::size_t most_nbytes) {
  return pack_chunks(source.layout, destination.layout, info(dtype).itemsize, static_cast<std::int64_t>(most_nbytes),
                     Repeated::once)
      .size();
}

}  // namespace ferry
