// New torch tensors whose memory comes from us: aligned to 64 bytes, and from a size on from the pool of warm blocks.
#pragma once

#include <optional>

#include "bind/py_ref.hpp"
#include "bind/source.hpp"
#include "core/tensor_ref.hpp"

namespace ferry::bind {

struct OwnedTensor {
  PyRef tensor;
  TensorRef ref;  // through which to fill it
};

// Uninitialised; the strides, in bytes, are those of one block without holes. As with every tensor over foreign memory,
// torch cannot enlarge its storage in place. Nothing where torch has no exchange table, or lacks the dtype, or there is
// no element.
[[nodiscard]] std::optional<OwnedTensor> owned_tensor(DType dtype, const Extents& shape, const Extents& strides);

// Memory for a tensor that something else makes over it, kept by the source's owner.
[[nodiscard]] Source owned_source(DType dtype, const Extents& shape, const Extents& strides);

}  // namespace ferry::bind
