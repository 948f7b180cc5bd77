#include "cuda/kernel_image.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "cuda/driver_problem.hpp"

#if defined(FERRY_KERNEL_FATBIN)
// Hidden symbols of the image's own file, aligned as the driver asks for.
__asm__(
    ".section .rodata.ferry_kernels, \"a\"\n"
    ".balign 64\n"
    ".globl ferry_kernel_image_begin\n"
    ".hidden ferry_kernel_image_begin\n"
    "ferry_kernel_image_begin:\n"
    ".incbin \"" FERRY_KERNEL_FATBIN
    "\"\n"
    ".byte 0\n"
    ".previous\n");
extern "C" __attribute__((visibility("hidden"))) const std::byte ferry_kernel_image_begin[];
#endif

namespace ferry::cuda {
namespace {

// The head of a fat binary, which says how long it is.
struct FatBinaryHead {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t head_nbytes;
  std::uint64_t body_nbytes;
};
constexpr std::uint32_t fat_binary_magic = 0xBA55ED50U;

// The driver believes the head and would read on behind the end.
bool is_cut_short(const std::byte* data, std::size_t nbytes) noexcept {
  FatBinaryHead head{};
  if (nbytes < sizeof(head)) return nbytes < sizeof(std::uint32_t);
  std::memcpy(&head, data, sizeof(head));
  if (head.magic != fat_binary_magic) return false;
  return head.head_nbytes > nbytes || head.body_nbytes > nbytes - head.head_nbytes;
}

}  // namespace

KernelBuild kernel_build() noexcept {
#if defined(FERRY_KERNEL_FATBIN)
  return {true, FERRY_KERNEL_ARCHITECTURES, FERRY_KERNEL_PTX, FERRY_KERNEL_TOOLKIT, FERRY_KERNEL_DRIVER, {}};
#elif defined(FERRY_KERNELS_MISSING)
  return {false, {}, {}, {}, 0, FERRY_KERNELS_MISSING};
#else
  return {false, {}, {}, {}, 0, "this build was made without kernels"};
#endif
}

std::string needed_driver_text(int driver_version) {
  const char* release = driver_version >= 13000 ? "580" : "525";
  return "CUDA " + cuda_version_text(driver_version) + " (driver " + release + " or newer)";
}

KernelImage kernel_image() {
  const char* named = ::secure_getenv("TENSORFERRY_KERNEL_IMAGE");
  if (named != nullptr && *named != '\0') return read_kernel_image(named);
#if defined(FERRY_KERNEL_FATBIN)
  return {ferry_kernel_image_begin, "embedded", {}, {}};
#else
  return {};
#endif
}

KernelImage read_kernel_image(const std::string& file) {
  KernelImage image;
  image.source = file;
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const std::streamoff nbytes = stream ? static_cast<std::streamoff>(stream.tellg()) : -1;
  if (nbytes < 0 || !stream.seekg(0)) {
    image.problem = "the file cannot be read";
    return image;
  }
  const auto size = static_cast<std::size_t>(nbytes);
  image.owned = std::make_unique<std::byte[]>(size + 1);  // text ends with a zero
  if (!stream.read(reinterpret_cast<char*>(image.owned.get()), nbytes)) {
    image.problem = "the file cannot be read";
  } else if (is_cut_short(image.owned.get(), size)) {
    image.problem = "the file is cut short";
  } else {
    image.data = image.owned.get();
  }
  return image;
}

}  // namespace ferry::cuda
