// The shape a tensor has once packed elements are unpacked, and the check that two tensors agree in it.
#pragma once

#include "core/tensor_ref.hpp"

namespace ferry {

// A packed dtype's layout counts items; its last axis unpacks. Throws Error(layout) when there is no last axis.
[[nodiscard]] Extents logical_shape(const TensorRef& tensor);

// The shape both have; throws Error(layout) when they differ.
[[nodiscard]] Extents common_shape(const TensorRef& destination, const TensorRef& source);

}  // namespace ferry
