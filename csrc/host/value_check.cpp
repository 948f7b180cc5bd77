#include "host/value_check.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ferry {
namespace {

bool is_complex(DType dtype) noexcept { return info(dtype).kind == Kind::complex; }

bool is_integer(DType dtype) noexcept {
  return info(dtype).kind == Kind::signed_integer || info(dtype).kind == Kind::unsigned_integer;
}

bool is_wide(DType dtype) noexcept { return is_integer(dtype) && info(dtype).value_bits == 64; }

bool is_signed(DType dtype) noexcept { return info(dtype).kind == Kind::signed_integer; }

std::uint64_t highest(DType dtype) noexcept {
  const int bits = info(dtype).value_bits;
  return ~std::uint64_t{0} >> (64 - bits + (is_signed(dtype) ? 1 : 0));
}

std::uint64_t lowest(DType dtype) noexcept { return is_signed(dtype) ? ~highest(dtype) : 0U; }

DType part_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::complex32:
      return DType::float16;
    case DType::complex64:
      return DType::float32;
    case DType::complex128:
      return DType::float64;
    default:
      return dtype;
  }
}

// Does float32 hold every value?
bool float32_holds(DType dtype) noexcept {
  const DTypeInfo& type = info(dtype);
  if (dtype == DType::float32 || type.kind == Kind::boolean) return true;
  return type.value_bits <= 16;
}

// Does -2^63 become an infinity? That saturates back to it.
bool makes_smallest_infinite(DType to) noexcept { return info(to).value_bits <= 16 && to != DType::bfloat16; }

}  // namespace

ValueCheck::ValueCheck(DType to, DType from) noexcept {
  const auto side = [](DType dtype) {
    return Side{part_of(dtype), info(part_of(dtype)).itemsize, info(dtype).itemsize};
  };
  to_ = side(to);
  from_ = side(from);
  if (is_complex(to) && is_complex(from)) {
    parts_ = 2;
    to_.step = to_.itemsize;
    from_.step = from_.itemsize;
  }
  imaginary_is_zero_ = is_complex(from) && !is_complex(to);
  choose_comparison();
}

ValueCheck::Range ValueCheck::range(DType dtype, std::uint64_t low, std::uint64_t high) noexcept {
  const auto size = static_cast<std::size_t>(std::countr_zero(info(dtype).itemsize));
  return {kernels().beyond[size], low, high - low};
}

void ValueCheck::choose_comparison() noexcept {
  const DType to = to_.dtype;
  const DType from = from_.dtype;
  const bool to_whole = is_integer(to) || to == DType::bool_;
  if (from == DType::bool_ && to_whole) {
    compares_ = false;
    return;
  }
  if (is_integer(from) && to_whole) {
    compares_ = false;
    const bool both_signed = is_signed(from) && is_signed(to);
    const auto low = static_cast<std::uint64_t>(
        std::max(static_cast<std::int64_t>(lowest(from)), static_cast<std::int64_t>(lowest(to))));
    from_range_ = range(from, both_signed ? low : 0U, std::min(highest(from), highest(to)));
    return;
  }
  // The largest 64-bit integer is no float: where it stands, it was rounded or saturated.
  if (is_wide(from)) {
    std::uint64_t low = lowest(from);
    if (to == DType::float8_e8m0fnu) {
      low = 1;  // 0 becomes a NaN, which becomes 0
    } else if (is_signed(from) && makes_smallest_infinite(to)) {
      ++low;
    }
    from_range_ = range(from, low, highest(from) - 1U);
    common_ = from;
  } else {
    if (is_wide(to)) to_range_ = range(to, lowest(to), highest(to) - 1U);
    common_ = float32_holds(to) && float32_holds(from) ? DType::float32 : DType::float64;
  }
  if (to != common_) to_common_ = kernels().cast(common_, to);
  if (from != common_) from_common_ = kernels().cast(common_, from);
  if (to == common_ && to_.step != to_.itemsize)
    to_common_ = kernels().move[static_cast<std::size_t>(to_.itemsize) - 1U];
  if (from == common_ && from_.step != from_.itemsize)
    from_common_ = kernels().move[static_cast<std::size_t>(from_.itemsize) - 1U];
}

bool ValueCheck::operator()(const std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  count *= parts_;
  if (from_range_.beyond != nullptr && from_range_.beyond(from, count, from_range_.low, from_range_.span) != 0)
    return false;
  if (to_range_.beyond != nullptr && to_range_.beyond(to, count, to_range_.low, to_range_.span) != 0) return false;
  if (!compares_) return true;
  if (imaginary_is_zero_) {
    kernels().cast(DType::bool_, from_.dtype)(from_values_.data(), 1, from + from_.itemsize, from_.step, count);
    if (kernels().beyond[0](from_values_.data(), count, 0, 0) != 0) return false;
  }
  const std::int64_t itemsize = info(common_).itemsize;
  if (to_common_ != nullptr) {
    to_common_(to_values_.data(), itemsize, to, to_.step, count);
    to = to_values_.data();
  }
  if (from_common_ != nullptr) {
    from_common_(from_values_.data(), itemsize, from, from_.step, count);
    from = from_values_.data();
  }
  if (common_ == DType::float32) return kernels().same_float32(to, from, count);
  if (common_ == DType::float64) return kernels().same_float64(to, from, count);
  return std::memcmp(to, from, static_cast<std::size_t>(count * itemsize)) == 0;
}

}  // namespace ferry
