#include "cuda/kernels.hpp"

#include "core/dtype.hpp"
#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

// Kernels do not see core/dtype.hpp; so the two lists are compared here.
#define FERRY_SAME_NUMBER(name, itemsize, alignment) \
  static_assert(static_cast<int>(gpu::ElementType::name) == static_cast<int>(DType::name));
FERRY_ELEMENT_TYPES(FERRY_SAME_NUMBER)
#undef FERRY_SAME_NUMBER
#define FERRY_SAME_SIZE(name, kind, value_bits, size, ...) \
  static_assert(gpu::itemsize(gpu::ElementType::name) == (size));
FERRY_DTYPES(FERRY_SAME_SIZE)
#undef FERRY_SAME_SIZE

}  // namespace

void Kernels::launch(const ContextScope& scope, const gpu::Launch& launch, CUstream stream) const {
  launch_bytes(scope, launch.kernel(), launch.grid(), launch.args(), launch.nbytes(), stream);
}

void Kernels::launch_bytes(const ContextScope& scope, gpu::Kernel kernel, gpu::Grid grid, const void* args,
                           std::size_t nbytes, CUstream stream) const {
  const gpu::KernelInfo& known = gpu::info(kernel);
  if (known.argument_nbytes != nbytes || scope.context() != context_) {
    throw Error(ErrorKind::device, known.symbol, "its arguments or its context are another kernel's",
                "report it together with what `tensorferry doctor --json` prints");
  }
  void* parameters[] = {const_cast<void*>(args)};  // the driver copies from it
  const CUfunction entry = entries_[static_cast<std::size_t>(kernel)];
  check(functions_,
        functions_.cuLaunchKernel(entry, grid.blocks, 1, 1, grid.threads, 1, 1, 0, stream, parameters, nullptr),
        "cuLaunchKernel");
}

}  // namespace ferry::cuda
