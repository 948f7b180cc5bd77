// Among integers and bool.
#include "host/kernels/cast_loop.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <class To, class From>
constexpr MoveRow integer_row() noexcept {
  if constexpr (std::is_same_v<To, From>) {
    return nullptr;
  } else if constexpr (std::is_same_v<To, bool>) {
    return row_between<bool, std::make_unsigned_t<From>>;
  } else if constexpr (std::is_same_v<From, bool>) {
    return row_between<std::make_unsigned_t<To>, bool>;
  } else {
    // A sign matters only to what it extends: the others share their code.
    using Source = std::conditional_t<(sizeof(To) > sizeof(From)), From, std::make_unsigned_t<From>>;
    return row_between<std::make_unsigned_t<To>, Source>;
  }
}

}  // namespace

MoveRow cast_integers(DType to, DType from) noexcept {
  return with_integer(to, [from]<class To>(std::type_identity<To>) {
    return with_integer(from, []<class From>(std::type_identity<From>) { return integer_row<To, From>(); });
  });
}

}  // namespace ferry::inline FERRY_LEVEL
