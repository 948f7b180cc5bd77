// Why there is no driver to work with.
#pragma once

#include <string>

#include "core/error.hpp"
#include "cuda/driver_types.hpp"

namespace ferry::cuda {

enum class Unusable : unsigned char {
  missing_library,       // libcuda cannot be opened
  no_entry_point,        // the library has no cuGetProcAddress
  too_old,               // older than the floor
  missing_function,      // new enough, yet a required function is not there
  stub_library,          // 34: the toolkit's link-time stand-in
  driver_mismatch,       // 803: library and kernel module of different releases
  unsupported_compat,    // 804: a forward-compatibility library on a device that does not allow it
  no_device,             // the driver works and shows no device
  failed_to_initialise,  // cuInit failed otherwise
  forked,                // a child of a process that had used the driver
};

struct DriverProblem {
  Unusable kind;
  CUresult code;  // the driver's answer, where there was one
  std::string given;
  std::string why;
  std::string instead;

  [[nodiscard]] Error error() const { return {ErrorKind::device, given, why, instead}; }
};

[[nodiscard]] DriverProblem missing_library(const std::string& library, const std::string& loader_says);
[[nodiscard]] DriverProblem no_entry_point(const std::string& library);
[[nodiscard]] DriverProblem too_old(const std::string& library, int version);
[[nodiscard]] DriverProblem missing_function(const std::string& library, int version, const char* name);
[[nodiscard]] DriverProblem shows_no_device(const std::string& library);
[[nodiscard]] DriverProblem forked();

// An answer other than success on the way to a working driver; `says` is the driver's text for it, empty where unknown.
[[nodiscard]] DriverProblem failed_to_initialise(const std::string& library, CUresult code, const std::string& says);

// Codes that mean a wrong installation whichever function returns them: 34, 803, 804.
[[nodiscard]] bool is_wrong_installation(CUresult code) noexcept;

// "12.4" for 12040.
[[nodiscard]] std::string cuda_version_text(int version);

}  // namespace ferry::cuda
