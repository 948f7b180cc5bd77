#include "kernels/device_copy.hpp"

#include <algorithm>
#include <cstddef>

namespace ferry::gpu {
namespace {

constexpr std::uint64_t widest = 16;                // bytes of one access
constexpr std::uint64_t shortest_row_nbytes = 128;  // below, windows of 16 bytes are mostly edges
constexpr std::uint64_t shortest_side_nbytes = 32;  // of a matrix, for a transpose by tiles

std::uint64_t bits(std::int64_t stride) noexcept { return static_cast<std::uint64_t>(stride); }

std::uint64_t alignment_of(std::uint64_t number) noexcept {
  const std::uint64_t low = number | widest;
  return low & (0U - low);
}

// Begins at the axis' other end.
void flip(CopyAxis& axis, Address& to, Address& from) noexcept {
  to += bits((axis.extent - 1) * axis.to_stride);
  from += bits((axis.extent - 1) * axis.from_stride);
  axis.to_stride = -axis.to_stride;
  axis.from_stride = -axis.from_stride;
}

bool joins(const CopyAxis& inner, const CopyAxis& outer) noexcept {
  return outer.to_stride == inner.to_stride * inner.extent && outer.from_stride == inner.from_stride * inner.extent;
}

std::vector<CopyAxis> merged(const std::vector<CopyAxis>& axes) {
  std::vector<CopyAxis> kept;
  for (const CopyAxis& axis : axes) {
    if (!kept.empty() && joins(kept.back(), axis)) {
      kept.back().extent *= axis.extent;
    } else {
      kept.push_back(axis);
    }
  }
  return kept;
}

// A run of bytes moves by as much at once as it and everything else allow.
void widen(CanonicalCopy& copy) {
  std::uint64_t run = copy.itemsize;
  std::vector<CopyAxis>& axes = copy.axes;
  const auto item = static_cast<std::int64_t>(copy.itemsize);
  if (!axes.empty() && axes[0].to_stride == item && axes[0].from_stride == item) {
    run *= static_cast<std::uint64_t>(axes[0].extent);
    axes.erase(axes.begin());
  }
  std::uint64_t all = copy.to | copy.from | run;
  for (const CopyAxis& axis : axes) all |= bits(axis.to_stride) | bits(axis.from_stride);
  const std::uint64_t unit = alignment_of(all);
  if (unit < run) {
    const auto step = static_cast<std::int64_t>(unit);
    axes.insert(axes.begin(), {static_cast<std::int64_t>(run / unit), step, step});
  }
  copy.itemsize = static_cast<std::uint32_t>(unit);
}

bool runs_in_both(const CanonicalCopy& copy) noexcept {
  if (copy.axes.empty()) return true;
  const auto to = static_cast<std::int64_t>(copy.itemsize);
  const auto from =
      is_cast(copy.cast) ? static_cast<std::int64_t>(itemsize(static_cast<ElementType>(copy.cast.from))) : to;
  return copy.axes[0].to_stride == to && copy.axes[0].from_stride == from;
}

bool is_wide(const CopyAxis& axis, std::uint32_t size) noexcept {
  return static_cast<std::uint64_t>(axis.extent) * size >= shortest_side_nbytes;
}

// The axis that the source runs along, where that is another one than the destination's; 0 where there is none.
std::size_t crossing_axis(const CanonicalCopy& copy) noexcept {
  const auto item = static_cast<std::int64_t>(copy.itemsize);
  const std::vector<CopyAxis>& axes = copy.axes;
  if (is_cast(copy.cast) || axes.size() < 2 || axes.size() > max_outer_axes + 2) return 0;
  if (axes[0].to_stride != item || !is_wide(axes[0], copy.itemsize)) return 0;
  for (std::size_t a = 1; a < axes.size(); ++a) {
    const bool runs = axes[a].from_stride == item || axes[a].from_stride == -item;
    if (runs && is_wide(axes[a], copy.itemsize)) return a;
  }
  return 0;
}

Kernel by_itemsize(std::uint32_t size, Kernel of_1, Kernel of_2, Kernel of_4, Kernel of_8, Kernel of_16) noexcept {
  switch (size) {
    case 1:
      return of_1;
    case 2:
      return of_2;
    case 4:
      return of_4;
    case 8:
      return of_8;
    default:
      return of_16;
  }
}

struct CastKernels {
  Cast cast;
  Kernel rows;
  Kernel strided;
};
constexpr CastKernels hot_casts[] = {
#define Y(to, from)                                                                   \
  {cast_between(ElementType::to, ElementType::from), Kernel::rows_##to##_from_##from, \
   Kernel::strided_##to##_from_##from},
    FERRY_HOT_CASTS(Y)
#undef Y
};

CastKernels kernels_of(Cast cast) noexcept {
  for (const CastKernels& known : hot_casts) {
    if (known.cast == cast) return known;
  }
  return {cast, Kernel::rows_cast, Kernel::strided_cast};
}

Launch rows_launch(const CanonicalCopy& copy, BlockLimit limit) noexcept {
  const std::uint64_t width = copy.axes.empty() ? 1 : static_cast<std::uint64_t>(copy.axes[0].extent);
  const CopyAxis outer = copy.axes.size() > 1 ? copy.axes[1] : CopyAxis{1, 0, 0};
  const auto rows = static_cast<std::uint64_t>(outer.extent);
  const RowArgs args =
      is_cast(copy.cast)
          ? row_cast_args(copy.to, outer.to_stride, copy.from, outer.from_stride, rows, width, copy.cast)
          : row_args(copy.to, outer.to_stride, copy.from, outer.from_stride, rows, width * copy.itemsize);
  const Kernel kernel = is_cast(copy.cast) ? kernels_of(copy.cast).rows : Kernel::rows;
  const std::uint32_t per_thread = is_cast(copy.cast) ? 1 : 4;
  return {kernel, grid_for(rows * args.by_items.divisor, per_thread, limit), args};
}

Launch transpose_launch(CanonicalCopy copy, BlockLimit limit) noexcept {
  const std::size_t crossing = crossing_axis(copy);
  CopyAxis& across = copy.axes[crossing];
  if (across.from_stride < 0) flip(across, copy.to, copy.from);
  const std::uint32_t size = copy.itemsize;
  TransposeArgs args{};
  args.to = copy.to;
  args.from = copy.from;
  args.across = static_cast<std::uint64_t>(across.extent);
  args.along = static_cast<std::uint64_t>(copy.axes[0].extent);
  args.to_stride = across.to_stride;
  args.from_stride = copy.axes[0].from_stride;
  std::uint64_t to_all = copy.to | bits(args.to_stride);
  std::uint64_t from_all = copy.from | bits(args.from_stride);
  const std::uint64_t tiles_across = (args.across + tile_across(size) - 1) / tile_across(size);
  const std::uint64_t tiles_along = (args.along + tile_along(size) - 1) / tile_along(size);
  args.by_tiles_across = wide_divisor_of(tiles_across);
  args.by_tiles_along = wide_divisor_of(tiles_along);
  args.tiles = tiles_across * tiles_along;
  for (std::size_t a = 1; a < copy.axes.size(); ++a) {
    if (a == crossing) continue;
    const CopyAxis& axis = copy.axes[a];
    args.outer[args.outer_count++] = {axis.to_stride, axis.from_stride,
                                      wide_divisor_of(static_cast<std::uint64_t>(axis.extent))};
    to_all |= bits(axis.to_stride);
    from_all |= bits(axis.from_stride);
    args.tiles *= static_cast<std::uint64_t>(axis.extent);
  }
  args.to_alignment = static_cast<std::uint32_t>(alignment_of(to_all));
  args.from_alignment = static_cast<std::uint32_t>(alignment_of(from_all));
  const Kernel kernel = by_itemsize(size, Kernel::transpose_1, Kernel::transpose_2, Kernel::transpose_4,
                                    Kernel::transpose_8, Kernel::transpose_16);
  return {kernel, grid_for_tiles(args.tiles, limit), args};
}

StridedArgs strided_args(const CanonicalCopy& copy) noexcept {
  StridedArgs args{};
  args.to = copy.to;
  args.from = copy.from;
  args.count = copy.count;
  args.axis_count = static_cast<std::uint32_t>(copy.axes.size());
  args.wide = copy.count >= index_limit ? 1 : 0;
  args.itemsize = is_cast(copy.cast) ? 0 : copy.itemsize;
  args.cast = copy.cast;
  for (std::size_t a = 0; a < copy.axes.size(); ++a) {
    const CopyAxis& axis = copy.axes[a];
    const auto extent = static_cast<std::uint64_t>(axis.extent);
    args.axes[a] = {axis.to_stride, axis.from_stride, wide_divisor_of(extent),
                    divisor_of(args.wide != 0 ? 1 : static_cast<std::uint32_t>(extent)), 0};
  }
  return args;
}

// Can casts touch every element?
bool is_aligned(const CanonicalCopy& copy) noexcept {
  const std::uint64_t to_unit = element_alignment(static_cast<ElementType>(copy.cast.to));
  const std::uint64_t from_unit = element_alignment(static_cast<ElementType>(copy.cast.from));
  std::uint64_t to = copy.to;
  std::uint64_t from = copy.from;
  for (const CopyAxis& axis : copy.axes) {
    to |= bits(axis.to_stride);
    from |= bits(axis.from_stride);
  }
  return to % to_unit == 0 && from % from_unit == 0;
}

bool can_launch(const CanonicalCopy& copy) noexcept {
  if (copy.count == 0 || copy.axes.size() > max_axes) return false;
  if (!is_cast(copy.cast)) return true;
  return casts(static_cast<ElementType>(copy.cast.to)) && casts(static_cast<ElementType>(copy.cast.from)) &&
         is_aligned(copy);
}

}  // namespace

CanonicalCopy canonical(const DeviceCopy& given) {
  CanonicalCopy copy{given.to, given.from, itemsize(given.to_type), no_cast, 1, {}};
  if (given.to_type != given.from_type) copy.cast = cast_between(given.to_type, given.from_type);
  for (CopyAxis axis : given.axes) {
    copy.count *= static_cast<std::uint64_t>(axis.extent);
    if (axis.extent == 1) continue;
    if (axis.extent > 0 && axis.to_stride < 0) flip(axis, copy.to, copy.from);
    copy.axes.push_back(axis);
  }
  if (copy.count == 0) {
    copy.axes.clear();
    return copy;
  }
  std::stable_sort(copy.axes.begin(), copy.axes.end(),
                   [](const CopyAxis& a, const CopyAxis& b) { return a.to_stride < b.to_stride; });
  copy.axes = merged(copy.axes);
  if (!is_cast(copy.cast)) widen(copy);
  copy.count = 1;
  for (const CopyAxis& axis : copy.axes) copy.count *= static_cast<std::uint64_t>(axis.extent);
  return copy;
}

CopyMethod method_for(const CanonicalCopy& copy) noexcept {
  const std::uint64_t run =
      copy.axes.empty() ? copy.itemsize : static_cast<std::uint64_t>(copy.axes[0].extent) * copy.itemsize;
  const bool long_enough = is_cast(copy.cast) || copy.axes.size() < 2 || run >= shortest_row_nbytes;
  if (copy.axes.size() <= 2 && runs_in_both(copy) && long_enough) return CopyMethod::rows;
  return crossing_axis(copy) != 0 ? CopyMethod::transpose : CopyMethod::strided;
}

std::optional<Launch> launch_for(const DeviceCopy& given, BlockLimit limit) {
  const CanonicalCopy copy = canonical(given);
  if (!can_launch(copy)) return std::nullopt;
  switch (method_for(copy)) {
    case CopyMethod::rows:
      return rows_launch(copy, limit);
    case CopyMethod::transpose:
      return transpose_launch(copy, limit);
    default:
      break;
  }
  const Kernel kernel = is_cast(copy.cast) ? kernels_of(copy.cast).strided
                                           : by_itemsize(copy.itemsize, Kernel::strided_1, Kernel::strided_2,
                                                         Kernel::strided_4, Kernel::strided_8, Kernel::strided_16);
  return Launch(kernel, grid_for(copy.count, 4, limit), strided_args(copy));
}

std::optional<Launch> store_launch_for(const DeviceCopy& given, const Signal& signal, BlockLimit limit) {
  const CanonicalCopy copy = canonical(given);
  if (!can_launch(copy)) return std::nullopt;
  const Kernel kernel = is_cast(copy.cast) ? Kernel::strided_cast_store : Kernel::strided_store;
  return Launch(kernel, grid_for(copy.count, 4, limit), StridedStoreArgs{strided_args(copy), signal});
}

}  // namespace ferry::gpu
