// TENSORFERRY_DEBUG=poison: memory is filled before it gets its values, so that who reads too early sees it.
#pragma once

#include <cstddef>

#include "core/tensor_ref.hpp"

namespace ferry::bind {

// Each does nothing unless that was asked for when the process began.
void poison(std::byte* data, std::size_t nbytes) noexcept;
// Every element, and nothing between them.
void poison(const TensorRef& destination);

}  // namespace ferry::bind
