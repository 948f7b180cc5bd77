#include "cuda/driver_problem.hpp"

namespace ferry::cuda {
namespace {

const char* const install_driver = "install NVIDIA driver 525 or newer, or convert on the host: x.cpu()";

std::string quoted(const std::string& library) { return "the driver library " + library; }

}  // namespace

std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

bool is_wrong_installation(CUresult code) noexcept {
  return code == result::stub_library || code == result::system_driver_mismatch ||
         code == result::compat_not_supported_on_device;
}

DriverProblem missing_library(const std::string& library, const std::string& loader_says) {
  return {Unusable::missing_library, success, quoted(library), "it cannot be opened (" + loader_says + ")",
          install_driver};
}

DriverProblem no_entry_point(const std::string& library) {
  return {Unusable::no_entry_point, success, quoted(library),
          "it exports no cuGetProcAddress, so it is older than CUDA 11.3 or no NVIDIA driver", install_driver};
}

DriverProblem too_old(const std::string& library, int version) {
  return {Unusable::too_old, success, quoted(library),
          "it supports CUDA " + cuda_version_text(version) + ", and 12.0 (driver 525) is the oldest that is supported",
          install_driver};
}

DriverProblem missing_function(const std::string& library, int version, const char* name) {
  return {Unusable::missing_function, result::not_found, quoted(library),
          "it claims CUDA " + cuda_version_text(version) + " but has no " + name,
          "reinstall the NVIDIA driver; a container may have mounted the libraries of another release"};
}

DriverProblem shows_no_device(const std::string& library) {
  return {Unusable::no_device, result::no_device, quoted(library), "it shows no device",
          "check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, that it was given the devices"};
}

DriverProblem forked() {
  return {Unusable::forked, result::not_initialized, "a device in a forked process",
          "CUDA was initialised before the fork, and the driver does not work in the child",
          "start processes with multiprocessing's \"spawn\" or \"forkserver\", or use no device before the fork"};
}

DriverProblem failed_to_initialise(const std::string& library, CUresult code, const std::string& says) {
  switch (code) {
    case result::no_device:
      return shows_no_device(library);
    case result::stub_library:
      return {Unusable::stub_library, code, quoted(library),
              "it is the toolkit's stub, which is there for linking only",
              "take the folder \"stubs\" out of LD_LIBRARY_PATH, so that the driver's own libcuda.so.1 is found"};
    case result::system_driver_mismatch:
      return {Unusable::driver_mismatch, code, quoted(library),
              "it is of another release than the NVIDIA kernel module that is loaded",
              "restart the machine after a driver update; in a container, use the host's libcuda.so.1"};
    case result::compat_not_supported_on_device:
      return {Unusable::unsupported_compat, code, quoted(library),
              "it is a forward-compatibility library, which works with data-centre GPUs only",
              "take the folder \"compat\" out of LD_LIBRARY_PATH, or update the NVIDIA driver"};
    case result::not_initialized: {
      DriverProblem problem = forked();
      problem.code = code;
      return problem;
    }
    default:
      break;
  }
  return {Unusable::failed_to_initialise, code, quoted(library),
          "it cannot be initialised: code " + std::to_string(code) + (says.empty() ? "" : ", " + says),
          "see whether nvidia-smi works, and what `tensorferry doctor` says"};
}

}  // namespace ferry::cuda
