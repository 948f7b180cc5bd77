// Between float32, float64, integers and bool.
#include "host/kernels/cast_loop.hpp"

namespace ferry::inline FERRY_LEVEL {

MoveRow cast_to_floats(DType to, DType from) noexcept {
  if (to == DType::float32) {
    if (from == DType::float64) return row_between<float, double>;
    return with_integer(from, []<class From>(std::type_identity<From>) { return row_between<float, From>; });
  }
  if (to != DType::float64) return nullptr;
  if (from == DType::float32) return row_between<double, float>;
  return with_integer(from, []<class From>(std::type_identity<From>) { return row_between<double, From>; });
}

MoveRow cast_from_floats(DType to, DType from) noexcept {
  if (from == DType::float32) {
    return with_integer(to, []<class To>(std::type_identity<To>) { return row_between<To, float>; });
  }
  if (from != DType::float64) return nullptr;
  return with_integer(to, []<class To>(std::type_identity<To>) { return row_between<To, double>; });
}

}  // namespace ferry::inline FERRY_LEVEL
