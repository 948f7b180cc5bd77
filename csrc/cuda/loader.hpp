// Opens the driver's library and fills the table of its functions.
#pragma once

#include <optional>
#include <string>

#include "cuda/driver_functions.hpp"
#include "cuda/driver_problem.hpp"

namespace ferry::cuda {

struct LoadedLibrary {
  Functions functions;
  int version = 0;
  std::optional<DriverProblem> problem;
};

// What TENSORFERRY_LIBCUDA names; empty when it is unset, and in a process with more rights than its user.
[[nodiscard]] std::string library_override();

// Opens `library` (one that is loaded already first) and keeps it open for good if it is a driver that will do.
[[nodiscard]] LoadedLibrary load_library(const std::string& library);

}  // namespace ferry::cuda
