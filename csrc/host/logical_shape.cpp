#include "host/logical_shape.hpp"

#include <string>

#include "core/checked_math.hpp"
#include "core/error.hpp"

namespace ferry {
namespace {

std::string text(const Extents& shape) {
  std::string out = "(";
  for (int axis = 0; axis < shape.size(); ++axis) {
    if (axis > 0) out += ", ";
    out += std::to_string(shape[axis]);
  }
  return out + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace

Extents logical_shape(const TensorRef& tensor) {
  Extents shape = tensor.layout.shape;
  const std::int64_t per_item = info(tensor.dtype).elements_per_item;
  if (per_item == 1) return shape;
  const auto unpacked = shape.empty() ? std::nullopt : checked_mul(shape[shape.size() - 1], per_item);
  if (!unpacked) {
    throw Error(ErrorKind::layout,
                "a tensor of dtype " + std::string(info(tensor.dtype).name) + " and shape " + text(shape),
                "packed elements unpack along the last axis, and this shape has none that can grow",
                "give it a last axis, as in x.reshape(1), or read the bytes with dtype=\"bits\"");
  }
  shape[shape.size() - 1] = *unpacked;
  return shape;
}

Extents common_shape(const TensorRef& destination, const TensorRef& source) {
  const Extents to = logical_shape(destination);
  const Extents from = logical_shape(source);
  if (!(to == from)) {
    throw Error(ErrorKind::layout, "a source of shape " + text(from) + " and a destination of shape " + text(to),
                "a copy needs equal shapes", "reshape or expand one of them first");
  }
  return to;
}

}  // namespace ferry
