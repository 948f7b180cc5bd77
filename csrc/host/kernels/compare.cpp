// Compares rows of values.
#include "host/kernels/cast_loop.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

template <class Float, class Lane>
bool same_floats(const std::byte* a, const std::byte* b, std::int64_t count) noexcept {
  Lane different = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto left = get<Float>(a + i * size_of<Float>);
    const auto right = get<Float>(b + i * size_of<Float>);
    const Lane equal = static_cast<Lane>(left == right);
    const Lane both_nan = static_cast<Lane>(static_cast<Lane>(left != left) & static_cast<Lane>(right != right));
    different |= static_cast<Lane>((equal | both_nan) ^ Lane{1});
  }
  return different == 0;
}

}  // namespace

bool same_float32(const std::byte* a, const std::byte* b, std::int64_t count) noexcept {
  return same_floats<float, std::int32_t>(a, b, count);
}

bool same_float64(const std::byte* a, const std::byte* b, std::int64_t count) noexcept {
  return same_floats<double, std::int64_t>(a, b, count);
}

}  // namespace ferry::inline FERRY_LEVEL
