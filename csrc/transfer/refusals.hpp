// Why a transfer is not made, in three parts each.
#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "core/tensor_ref.hpp"
#include "cuda/driver_functions.hpp"
#include "transfer/device_tensor.hpp"

namespace ferry {

// Throws Error when the tensor's stream takes no work of ours: it is of another device, as the current context shows,
// or is being captured, which leaves the capture as it is.
void refuse_stream(const cuda::Functions& functions, const DeviceTensor& tensor);

// Throws Error when the stream is being captured, or work in it would destroy a capture.
void refuse_capture(const cuda::Functions& functions, cuda::CUstream stream);

// Throws Error when the current context is of another device than this.
void refuse_other_device(const cuda::Functions& functions, int device);

// Throws Error when two elements share a byte.
void refuse_overlap(const TensorRef& destination);

// The same, and unless both have the same shape and, for equal dtypes, item size.
void refuse_unlike(const TensorRef& destination, const TensorRef& source);

// Throws Error when the shapes differ, and for packed elements of another dtype: they are not taken apart on the way.
void refuse_repacking(const TensorRef& destination, const TensorRef& source);

[[nodiscard]] Error no_stream();
[[nodiscard]] Error too_many_pieces(const TensorRef& tensor, std::size_t most);
[[nodiscard]] Error no_kernel_for(const TensorRef& tensor);
[[nodiscard]] Error too_sparse(const TensorRef& tensor);
[[nodiscard]] Error no_snapshot_of(const TensorRef& tensor, std::size_t nbytes, std::size_t most);
[[nodiscard]] Error no_staging(int device);
[[nodiscard]] Error nothing_free(std::size_t nbytes);
[[nodiscard]] Error no_pinned_memory(std::size_t nbytes);

}  // namespace ferry
