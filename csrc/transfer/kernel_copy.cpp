#include "transfer/kernel_copy.hpp"

namespace ferry {
namespace {

gpu::ElementType type_of(DType dtype) noexcept { return static_cast<gpu::ElementType>(dtype); }  // the same numbers

}  // namespace

gpu::DeviceCopy kernel_copy(const KernelEnd& to, const KernelEnd& from) {
  gpu::DeviceCopy copy{to.address, from.address, type_of(to.dtype), type_of(from.dtype), {}};
  copy.axes.reserve(static_cast<std::size_t>(to.layout.ndim()));
  for (int i = 0; i < to.layout.ndim(); ++i) {
    copy.axes.push_back({to.layout.shape[i], to.layout.strides[i], from.layout.strides[i]});
  }
  return copy;
}

bool kernels_can_copy(const Layout& to, DType to_dtype, const Layout& from, DType from_dtype) {
  if (element_count(to.shape).value_or(0) == 0) return true;
  return gpu::launch_for(kernel_copy({0, to, to_dtype}, {0, from, from_dtype}), gpu::link_bound).has_value();
}

bool kernels_can_cast(DType from, DType to) noexcept { return gpu::casts(type_of(from)) && gpu::casts(type_of(to)); }

std::int64_t cast_alignment(DType dtype) noexcept { return gpu::element_alignment(type_of(dtype)); }

}  // namespace ferry
