// Our kernels, loaded and ready in one context.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "cuda/context.hpp"
#include "kernels/launch.hpp"

namespace ferry::cuda {

// Immutable; lives as long as the runtime that gave it. Everything is resident: no launch loads code.
class Kernels {
 public:
  Kernels(const Functions& functions, const ContextIdentity& context,
          const std::array<CUfunction, gpu::kernel_count>& entries, int multiprocessors) noexcept
      : functions_(functions), context_(context), entries_(entries), multiprocessors_(multiprocessors) {}

  // Enqueues in `stream`, which belongs to the scope's context; it may be capturing. The arguments are copied. Throws
  // Error.
  void launch(const ContextScope& scope, const gpu::Launch& launch, CUstream stream) const;

  // The same without a Launch. `Args` must be those of the kernel.
  template <class Args>
  void launch(const ContextScope& scope, gpu::Kernel kernel, gpu::Grid grid, const Args& args, CUstream stream) const {
    static_assert(gpu::is_argument<Args>);
    launch_bytes(scope, kernel, grid, &args, sizeof(Args), stream);
  }

  [[nodiscard]] const ContextIdentity& context() const noexcept { return context_; }
  [[nodiscard]] int multiprocessors() const noexcept { return multiprocessors_; }  // for gpu::memory_bound()

 private:
  void launch_bytes(const ContextScope& scope, gpu::Kernel kernel, gpu::Grid grid, const void* args, std::size_t nbytes,
                    CUstream stream) const;

  const Functions& functions_;
  ContextIdentity context_;
  std::array<CUfunction, gpu::kernel_count> entries_;
  int multiprocessors_;
};

enum class KernelState : std::uint8_t {
  ready,
  not_built,       // there is no image
  unreadable,      // TENSORFERRY_KERNEL_IMAGE names what cannot be read
  old_driver,      // the driver lacks the functions
  refused,         // the driver does not take the image, for this device or at all
  not_loaded_yet,  // the stream is capturing, or the driver failed for another reason: the next call tries again
};

// Why `kernels(scope)` gave what it gave.
struct KernelStatus {
  KernelState state = KernelState::not_loaded_yet;
  CUresult code = success;  // the driver's answer where there was one
  std::string why{};        // empty when ready
};

}  // namespace ferry::cuda
