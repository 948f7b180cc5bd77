// The binary that holds our kernels: embedded by the build, or a file that TENSORFERRY_KERNEL_IMAGE names.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace ferry::cuda {

// What the build has put into this library.
struct KernelBuild {
  bool embedded;
  std::string_view architectures;  // "75 80 86": compute capabilities that there is code for, times ten
  std::string_view ptx;            // "120": for this one and newer ones the driver compiles
  std::string_view toolkit;        // "13.0.88"
  int driver_version;              // 13000: the oldest CUDA whose driver takes the image, in the driver's counting
  std::string_view missing;        // why there is none, where there is none
};
[[nodiscard]] KernelBuild kernel_build() noexcept;

// "CUDA 13.0 (driver 580 or newer)" for 13000.
[[nodiscard]] std::string needed_driver_text(int driver_version);

// What is to be loaded. No data and no problem: nothing is there.
struct KernelImage {
  const void* data = nullptr;
  std::string source{};   // "embedded", or the file's name
  std::string problem{};  // why the file cannot be used
  std::unique_ptr<std::byte[]> owned{};
};

// The variable is ignored in a process with more rights than its user.
[[nodiscard]] KernelImage kernel_image();
[[nodiscard]] KernelImage read_kernel_image(const std::string& file);

}  // namespace ferry::cuda
