// Does a kernel pack what goes through the ring to the host? A pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/tensor_ref.hpp"
#include "transfer/link_figures.hpp"

namespace ferry {

struct RingPacking {
  DType dtype = DType::uint8;  // over the link: that of the destination where its values are not larger
};

// Into the destination's order. Nothing where the copy engine does it as well, and where no kernel takes it.
[[nodiscard]] std::optional<RingPacking> ring_packing(const TensorRef& source, const TensorRef& destination,
                                                      const LinkFigures& link);

// Parts that a tensor is packed in, of at most so many bytes.
[[nodiscard]] std::size_t packed_parts(const TensorRef& source, const TensorRef& destination, DType dtype,
                                       std::size_t most_nbytes);

}  // namespace ferry
