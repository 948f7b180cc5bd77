// Many tensors of one shape into one, on as many threads as the caller may use.
#pragma once

#include <span>

#include "core/tensor_ref.hpp"

namespace ferry {

// Copies each source to its place along the destination's first axis, as copy.hpp says; that axis is as long as there
// are sources. Nothing is checked about overlap.
void copy_each(const TensorRef& destination, std::span<const TensorRef> sources);

}  // namespace ferry
