// The kernels for questions about launches: the product's own.
#pragma once

#include <string>

#include "lab.hpp"

namespace ferry::litmus {

// Loaded for as long as it lives, in the current context. Throws NotAsked where there is no image for this driver: on a
// real one, TENSORFERRY_KERNEL_IMAGE names a file, else the one that this program was built with is taken.
class LoadedKernels {
 public:
  explicit LoadedKernels(const Lab& lab);
  ~LoadedKernels();
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;

  [[nodiscard]] cuda::CUlibrary library() const { return library_; }
  [[nodiscard]] cuda::CUfunction function(const char* name) const;
  // One block of 64 threads.
  template <class Args>
  cuda::CUresult launch_code(cuda::CUfunction function, Args& args, cuda::CUstream stream, unsigned blocks = 1) const {
    void* parameters[] = {&args};
    return lab_.driver().cuLaunchKernel(function, blocks, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr);
  }
  template <class Args>
  void launch(cuda::CUfunction function, Args& args, cuda::CUstream stream) const {
    lab_.must(launch_code(function, args, stream), "cuLaunchKernel");
  }

 private:
  const Lab& lab_;
  std::string image_;
  cuda::CUlibrary library_ = nullptr;
};

}  // namespace ferry::litmus
