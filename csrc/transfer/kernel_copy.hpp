// Copies of elements by kernels, in terms of layouts.
#pragma once

#include "core/dtype.hpp"
#include "core/layout.hpp"
#include "cuda/driver_types.hpp"
#include "kernels/device_copy.hpp"

namespace ferry {

// One end of a copy by a kernel, by the address that the device has for it.
struct KernelEnd {
  cuda::CUdeviceptr address = 0;
  Layout layout;
  DType dtype = DType::uint8;
};

// Both ends have the same shape. Of equal dtypes bits move; else values are cast.
[[nodiscard]] gpu::DeviceCopy kernel_copy(const KernelEnd& to, const KernelEnd& from);

// Is there a kernel for this, if the addresses are aligned as the dtypes ask?
[[nodiscard]] bool kernels_can_copy(const Layout& to, DType to_dtype, const Layout& from, DType from_dtype);

// Can values of the one become the other on a device?
[[nodiscard]] bool kernels_can_cast(DType from, DType to) noexcept;

// Bytes that divide every address that a cast of this dtype touches.
[[nodiscard]] std::int64_t cast_alignment(DType dtype) noexcept;

}  // namespace ferry
