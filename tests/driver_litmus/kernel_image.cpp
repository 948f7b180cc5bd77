#include "kernel_image.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace ferry::litmus {
namespace {

#if defined(LITMUS_KERNEL_IMAGE)
constexpr const char* built_with = LITMUS_KERNEL_IMAGE;
#else
constexpr const char* built_with = "";
#endif

std::string image_for(const Lab& lab) {
  if (lab.is_fake()) return "FAKE";
  const char* named = std::getenv("TENSORFERRY_KERNEL_IMAGE");
  const std::string path = named != nullptr && *named != '\0' ? named : built_with;
  if (path.empty()) throw NotAsked("no image of kernels: TENSORFERRY_KERNEL_IMAGE names none");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw NotAsked(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

LoadedKernels::LoadedKernels(const Lab& lab) : lab_(lab), image_(image_for(lab)) {
  const Driver& d = lab.driver();
  lab.need(d.cuLibraryLoadData, "cuLibraryLoadData");
  const cuda::CUresult code = d.cuLibraryLoadData(&library_, image_.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code != cuda::success) throw NotAsked("this driver does not take the image of kernels: " + say(code));
}

LoadedKernels::~LoadedKernels() {
  lab_.settle();
  lab_.driver().cuLibraryUnload(library_);
}

cuda::CUfunction LoadedKernels::function(const char* name) const {
  cuda::CUkernel kernel = nullptr;
  cuda::CUfunction function = nullptr;
  lab_.must(lab_.driver().cuLibraryGetKernel(&kernel, library_, name), "cuLibraryGetKernel");
  lab_.must(lab_.driver().cuKernelGetFunction(&function, kernel), "cuKernelGetFunction");
  int registers = 0;  // asking for an attribute loads the kernel, whatever the loading mode
  lab_.must(lab_.driver().cuFuncGetAttribute(&registers, 4, function), "cuFuncGetAttribute");
  return function;
}

}  // namespace ferry::litmus
