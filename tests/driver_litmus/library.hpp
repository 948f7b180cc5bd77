// The driver's library, opened by this program itself: it does not lean on the product's loader, which it checks.
#pragma once

#include <string>
#include <vector>

#include "cuda/driver_functions.hpp"
#include "extra_functions.hpp"

namespace ferry::litmus {

struct ExtraFunctions {
#define LITMUS_MEMBER(name, version, parameters) cuda::CUresult(*name) parameters = nullptr;
  using CUdevice = cuda::CUdevice;
  using CUdeviceptr = cuda::CUdeviceptr;
  using CUstream = cuda::CUstream;
  using CUcontext = cuda::CUcontext;
  using CUgraph = cuda::CUgraph;
  using CUgraphExec = cuda::CUgraphExec;
  LITMUS_EXTRA(LITMUS_MEMBER)
#undef LITMUS_MEMBER
};

// Every function by its name; null where the driver has it not.
struct Driver : cuda::Functions, ExtraFunctions {};

class Library {
 public:
  // Throws std::runtime_error where `path` cannot be opened or is no driver.
  explicit Library(const std::string& path);

  struct Found {
    cuda::CUresult code;
    void* function;
    int status;  // 0 found, 1 no such symbol, 2 version too small; -1 where the old entry point was asked
  };
  // cuGetProcAddress, with the flag for legacy streams unless told otherwise.
  [[nodiscard]] Found find(const char* name, int version, std::uint64_t flags = 1) const;

  // A symbol that only the fake driver exports; null on a real one.
  [[nodiscard]] void* exported(const char* name) const;

  [[nodiscard]] const Driver& driver() const { return driver_; }
  [[nodiscard]] const std::vector<std::string>& missing() const { return missing_; }  // required ones

 private:
  void* handle_;
  Driver driver_;
  std::vector<std::string> missing_;
};

}  // namespace ferry::litmus
