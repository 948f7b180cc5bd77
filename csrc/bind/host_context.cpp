#include "bind/host_context.hpp"

#include "core/error.hpp"
#include "cuda/driver.hpp"
#include "cuda/primary_contexts.hpp"

namespace ferry::bind {

HostContext context_for_pinning(std::optional<int> torch_device) {
  const cuda::DriverInUse in_use = cuda::driver_in_use();
  if (in_use.problem) return {std::nullopt, in_use.problem->given + ": " + in_use.problem->why};
  if (in_use.functions == nullptr) return {};
  try {
    const auto choice = cuda::context_for_host_memory(*in_use.functions, torch_device);
    if (!choice) return {};
    return {choice->device, ""};
  } catch (const Error& error) {
    return {std::nullopt, error.given() + ": " + error.why()};
  }
}

}  // namespace ferry::bind
