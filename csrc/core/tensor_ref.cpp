#include "core/tensor_ref.hpp"

namespace ferry {

bool is_aligned(const TensorRef& t) noexcept {
  const auto unit = static_cast<std::int64_t>(alignment(t.dtype));
  if (reinterpret_cast<std::uintptr_t>(t.data) % static_cast<std::uintptr_t>(unit) != 0) return false;
  for (int i = 0; i < t.layout.ndim(); ++i) {
    if (t.layout.shape[i] > 1 && t.layout.strides[i] % unit != 0) return false;
  }
  return true;
}

std::string summary(const TensorRef& source) {
  std::string text = "a (";
  for (int i = 0; i < source.layout.ndim(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(source.layout.shape[i]);
  }
  if (source.layout.ndim() == 1) text += ",";
  return text + ") " + std::string(info(source.dtype).name) + " tensor";
}

}  // namespace ferry
