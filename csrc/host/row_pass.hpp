// The loop of its own, if there is one, that makes elements of one tensor out of those of another.
#pragma once

#include "core/tensor_ref.hpp"
#include "host/kernels/kernels.hpp"

namespace ferry {

struct RowPass {
  MoveRow row = nullptr;    // null: the pair has no loop, and goes through blocks of carriers
  bool bits_move = false;   // the copy is one of bytes
  bool same_dtype = false;  // every value survives
};

[[nodiscard]] RowPass row_pass(const TensorRef& destination, const TensorRef& source) noexcept;

}  // namespace ferry
