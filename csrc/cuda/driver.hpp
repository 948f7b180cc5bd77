// The NVIDIA driver, opened at run time. Nothing is opened at import, and cuInit waits for the first use of a device:
// it makes every later fork a process without a device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "cuda/driver_functions.hpp"
#include "cuda/driver_problem.hpp"

namespace ferry::cuda {

inline constexpr int oldest_supported_version = 12000;  // driver 525

struct OpenedDriver;
struct DriverInUse;

class Driver {
 public:
  // Opens the library that TENSORFERRY_LIBCUDA names (ignored in privileged processes), else the libcuda.so.1 that is
  // loaded already, else the one that the system finds. Initialises nothing.
  [[nodiscard]] static OpenedDriver open();
  // Opens this library.
  [[nodiscard]] static OpenedDriver open(const std::string& library);

  // Calls cuInit and looks for a device, once; a failure is not remembered. Any thread.
  [[nodiscard]] std::optional<DriverProblem> initialise();

  // The driver's functions, once it is initialised. Throws Error in the child of a fork, where no function may be
  // called.
  [[nodiscard]] const Functions& functions() const;
  // The same for destructors: null where no function may be called.
  [[nodiscard]] const Functions* functions_if_usable() const noexcept;

  // See driver_in_use().
  [[nodiscard]] DriverInUse in_use() const;

  [[nodiscard]] int version() const noexcept { return version_; }  // 12040 for CUDA 12.4
  [[nodiscard]] const std::string& library() const noexcept { return library_; }

 private:
  Driver(std::string library, int version, const Functions& functions)
      : library_(std::move(library)), version_(version), functions_(functions) {}

  std::string library_;
  int version_;
  Functions functions_;
  // Fork generations; 0 before, and after a failure.
  std::atomic<std::uint32_t> initialised_in_{0};
  std::uint32_t begun_in_ = 0;  // a child may be forked while another thread is in cuInit
};

// Exactly one of the two is set.
struct OpenedDriver {
  std::unique_ptr<Driver> driver;
  std::optional<DriverProblem> problem;
};

// The process's driver, opened and initialised by the first call. Throws Error when there is none to work with.
[[nodiscard]] const Driver& driver();

// Why the library cannot be used, as far as opening it shows; initialises nothing.
[[nodiscard]] std::optional<DriverProblem> opening_problem();

// The functions of the process's driver where somebody, we or another library, has initialised it; null otherwise, and
// where it cannot be used: then `problem` says why. Opens the library and initialises nothing.
struct DriverInUse {
  const Functions* functions = nullptr;
  std::optional<DriverProblem> problem{};
};
[[nodiscard]] DriverInUse driver_in_use();

// The version of the process's driver, 0 where there is none. Opens the library and initialises nothing.
[[nodiscard]] int opened_driver_version();

// One line about the process's driver, "CUDA 12.4 (libcuda.so.1)" or "not usable: ...". Opens the library and
// initialises nothing, so that devices are not asked for.
[[nodiscard]] std::string driver_status();

}  // namespace ferry::cuda
