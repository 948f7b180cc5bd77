// From and to the floating-point formats of 8 and 16 bits. All go through float32, which holds each of their values;
// what it does not hold is rounded to odd there, so that only the second rounding counts.
#include "host/kernels/cast_loop.hpp"
#include "host/kernels/through_float.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

[[gnu::noinline]] void convert_to_bfloat16(std::byte* to, const std::byte* from, std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    put(to + i * size_of<BFloat16>, narrow_number(to_odd_float(get<std::int32_t>(from + i * size_of<std::int32_t>))));
  }
}

template <class To, class From>
constexpr MoveRow narrow_row() noexcept {
  if constexpr (std::is_same_v<From, float>) {
    return cast_items<narrow_items<To>, size_of<To>, size_of<float>>;
  } else if constexpr (std::is_same_v<To, BFloat16> && std::is_same_v<From, std::int32_t>) {
    return cast_items<convert_to_bfloat16, size_of<To>, size_of<From>>;  // common enough for a loop of its own
  } else {
    return cast_through<To, float, From, narrow_items<To>, to_odd_float_items<From>()>;
  }
}

template <class To, class From>
constexpr MoveRow widen_row() noexcept {
  if constexpr (std::is_same_v<From, BFloat16> && std::is_integral_v<To>) {
    return row_between<To, From>;  // common enough for loops of its own
  } else {
    return cast_through<To, float, From, convert_items<To, float>, widen_items<From>>;
  }
}

}  // namespace

MoveRow cast_to_small(DType to, DType from) noexcept {
  return with_small(to, [from]<class To>(std::type_identity<To>) {
    return with_real(from, []<class From>(std::type_identity<From>) { return narrow_row<To, From>(); });
  });
}

MoveRow cast_from_small(DType to, DType from) noexcept {
  return with_small(from, [to]<class From>(std::type_identity<From>) -> MoveRow {
    if (to == DType::float32) return cast_items<widen_items<From>, size_of<float>, size_of<From>>;
    if (to == DType::float64) return widen_row<double, From>();
    return with_integer(to, []<class To>(std::type_identity<To>) { return widen_row<To, From>(); });
  });
}

}  // namespace ferry::inline FERRY_LEVEL
