#include "cuda/context.hpp"

#include <string>

#include "cuda/driver_error.hpp"
#include "cuda/primary_contexts.hpp"

namespace ferry::cuda {
namespace {

Error no_active_context(CUdevice device) {
  return {ErrorKind::device, "device " + std::to_string(device), "it has no active context",
          "use a tensor of that device first, or name the device"};
}

Error was_reset(CUdevice device) {
  return {ErrorKind::device, "work begun on device " + std::to_string(device), "the device was reset meanwhile",
          "do not reset a device while arrays and transfers use it"};
}

}  // namespace

ContextIdentity identity_of(const Functions& functions, CUcontext context) {
  ContextIdentity identity{context, 0};
  check(functions, functions.cuCtxGetId(context, &identity.id), "cuCtxGetId");
  return identity;
}

bool is_alive(const Functions& functions, const ContextIdentity& context) noexcept {
  if (context.handle == nullptr) return false;
  unsigned long long id = 0;
  const CUresult code = functions.cuCtxGetId(context.handle, &id);
  if (code != success && code != result::invalid_context && code != result::context_is_destroyed) {
    report_cleanup(code, "cuCtxGetId");  // what was made in the context is lost, but not by a reset
  }
  return code == success && id == context.id;
}

CUcontext current_context(const Functions& functions) {
  CUcontext current = nullptr;
  check(functions, functions.cuCtxGetCurrent(&current), "cuCtxGetCurrent");
  return current;
}

std::optional<CUdevice> current_device(const Functions& functions) {
  if (current_context(functions) == nullptr) return std::nullopt;
  CUdevice device = 0;
  check(functions, functions.cuCtxGetDevice(&device), "cuCtxGetDevice");
  return device;
}

ContextScope::ContextScope(const Driver& driver, PrimaryContexts& primaries, CUdevice device, Primary policy)
    : driver_(driver), device_(device), pushed_(driver) {
  const Functions& functions = driver.functions();
  if (current_device(functions) == device) {
    context_ = identity_of(functions, current_context(functions));
    return;
  }
  const std::optional<ContextIdentity> primary = primaries.find(device, policy);
  if (!primary) throw no_active_context(device);
  context_ = *primary;
  push();
}

ContextScope::ContextScope(const Driver& driver, CUdevice device, const ContextIdentity& context)
    : driver_(driver), device_(device), context_(context), pushed_(driver) {
  const Functions& functions = driver.functions();
  if (identity_of(functions, context.handle) != context) throw was_reset(device);
  push();
}

void ContextScope::push() {
  pushed_.push(context_.handle);
  check(driver_.functions(), pushed_.code(), "cuCtxPushCurrent");
}

}  // namespace ferry::cuda
