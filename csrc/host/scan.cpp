#include "host/scan.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>

#include "core/error.hpp"
#include "host/block_cast.hpp"
#include "host/element_io.hpp"
#include "host/exact.hpp"
#include "host/logical_shape.hpp"
#include "host/walk.hpp"

namespace ferry {
namespace {

// Counts the values of carrier T for which is_wanted(value) holds.
template <class T, class IsWanted>
ScanReport scan(const TensorRef& tensor, IsWanted&& is_wanted) {
  const Extents shape = logical_shape(tensor);
  if (element_count(shape) == 0) return {};
  const std::int64_t per_item = info(tensor.dtype).elements_per_item;
  const Walk<1> walk(shape, {&tensor.layout.strides}, {tensor.data},
                     per_item > 1 ? WalkOrder::c_order_keep_last : WalkOrder::c_order);
  const LoadRow load = element_io(tensor.dtype, tensor.byte_swapped).load;
  const std::int64_t step = walk.row_steps()[0];
  ScanReport report;
  std::int64_t index = 0;
  Block block;
  walk.for_each_row([&](const auto& rows) {
    for_each_block(walk.row_extent(), [&](std::int64_t first, std::int64_t count) {
      load(rows[0] + first / per_item * step, step, count, block);
      apply_bits(tensor, block, count);
      const T* values = block.as<T>();
      std::int64_t found = 0;
      for (std::int64_t i = 0; i < count; ++i) found += is_wanted(values[i]) ? 1 : 0;
      if (found > 0 && report.count == 0) {
        report.first = index + first + (std::find_if(values, values + count, is_wanted) - values);
      }
      report.count += found;
    });
    index += walk.row_extent();
    return true;
  });
  return report;
}

template <class Int>
ScanReport scan_integers(const TensorRef& tensor, double low, double high) {
  const auto inside = integers_between<Int>(low, high);
  return scan<Int>(tensor, [inside](Int value) { return !inside.contains(value); });
}

}  // namespace

ScanReport scan_nonfinite(const TensorRef& tensor) {
  switch (info(tensor.dtype).kind) {
    case Kind::floating:
      return scan<double>(tensor, [](double value) { return !std::isfinite(value); });
    case Kind::complex:
      return scan<std::complex<double>>(tensor, [](const std::complex<double>& value) {
        return !std::isfinite(value.real()) || !std::isfinite(value.imag());
      });
    default:
      return {};
  }
}

ScanReport scan_outside(const TensorRef& tensor, double low, double high) {
  switch (info(tensor.dtype).kind) {
    case Kind::complex:
      throw Error(ErrorKind::dtype, "a tensor of dtype " + std::string(info(tensor.dtype).name),
                  "complex numbers have no order, so no range holds them", "check its real and imaginary parts");
    case Kind::floating:
      return scan<double>(tensor, [low, high](double value) { return !(low <= value && value <= high); });
    case Kind::signed_integer:
      return scan_integers<std::int64_t>(tensor, low, high);
    default:
      return scan_integers<std::uint64_t>(tensor, low, high);
  }
}

}  // namespace ferry
