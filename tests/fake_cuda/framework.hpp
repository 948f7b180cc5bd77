// The framework that owns the tensors, as the tests play it.
#pragma once

#include "world.hpp"

namespace fake {

/// The context that the framework works in: the device's primary one, or with the preset a green one. Made active.
CUctx_st& framework_context(World& w, Device device);

/// Work as the framework would: in its own context, in the name of the test.
class AsFramework {
 public:
  AsFramework(World& w, Device device, const char* what);
  ~AsFramework();
  AsFramework(const AsFramework&) = delete;
  AsFramework& operator=(const AsFramework&) = delete;

 private:
  ThreadState& thread_;
  bool was_test_;
  std::string was_calling_;
};

}  // namespace fake
