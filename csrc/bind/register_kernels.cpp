// What is known of the device kernels without asking a device.
#include <string>

#include "bind/register.hpp"
#include "cuda/driver.hpp"
#include "cuda/driver_problem.hpp"
#include "cuda/kernel_image.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

// Why no kernel can run here, as far as it shows before a device is used; empty where nothing speaks against it.
std::string obstacle(const cuda::KernelImage& image, const cuda::KernelBuild& build) {
  if (!image.problem.empty()) return image.problem;
  if (image.data == nullptr) return std::string(build.missing);
  if (const auto problem = cuda::opening_problem()) return problem->given + ": " + problem->why;
  const int version = cuda::opened_driver_version();
  if (image.source == "embedded" && version < build.driver_version) {
    return "the driver here is one of CUDA " + cuda::cuda_version_text(version) + ", while what toolkit " +
           std::string(build.toolkit) + " built needs " + cuda::needed_driver_text(build.driver_version);
  }
  return "";
}

py::dict kernel_facts() {
  const cuda::KernelBuild build = cuda::kernel_build();
  const cuda::KernelImage image = cuda::kernel_image();
  py::dict facts;
  facts["embedded"] = build.embedded;
  facts["missing"] = std::string(build.missing);
  facts["architectures"] = std::string(build.architectures);
  facts["ptx"] = std::string(build.ptx);
  facts["toolkit"] = std::string(build.toolkit);
  facts["needs"] = build.embedded ? cuda::needed_driver_text(build.driver_version) : std::string();
  facts["source"] = image.source;
  facts["obstacle"] = obstacle(image, build);
  return facts;
}

}  // namespace

void register_kernels(py::module_& module) {
  module.def("kernel_facts", &kernel_facts,
             "How the device kernels were built, and what keeps them from running here; initialises nothing.");
}

}  // namespace ferry::bind
