#include "cuda/primary_contexts.hpp"

#include <algorithm>

#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

bool is_active(const Functions& functions, CUdevice device) {
  unsigned flags = 0;
  int active = 0;
  check(functions, functions.cuDevicePrimaryCtxGetState(device, &flags, &active), "cuDevicePrimaryCtxGetState");
  return active != 0;
}

CUdevice device_at(const Functions& functions, int ordinal) {
  CUdevice device = 0;
  check(functions, functions.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  return device;
}

void release(const Functions& functions, CUdevice device) noexcept {
  report_cleanup(functions.cuDevicePrimaryCtxRelease(device), "cuDevicePrimaryCtxRelease");
}

ContextIdentity retained(const Functions& functions, CUdevice device) {
  CUcontext context = nullptr;
  const CUresult code = functions.cuDevicePrimaryCtxRetain(&context, device);
  if (code != success) {
    // The answer may be that of earlier work, and the context retained all the same.
    if (context != nullptr) release(functions, device);
    throw driver_error(functions, code, "cuDevicePrimaryCtxRetain");
  }
  try {
    return identity_of(functions, context);
  } catch (...) {
    release(functions, device);
    throw;
  }
}

}  // namespace

PrimaryContexts::~PrimaryContexts() {
  const Functions* functions = driver_.functions_if_usable();
  if (functions == nullptr) return;
  for (const Entry& entry : entries_) release(*functions, entry.device);
}

std::optional<ContextIdentity> PrimaryContexts::find(CUdevice device, Primary policy) {
  const Functions& functions = driver_.functions();
  const std::lock_guard lock(mutex_);
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [device](const Entry& known) { return known.device == device; });
  const bool known = entry != entries_.end();
  if (known && is_alive(functions, entry->context)) return entry->context;
  if (policy == Primary::if_active && !is_active(functions, device)) return std::nullopt;
  if (!known) entries_.reserve(entries_.size() + 1);
  const ContextIdentity context = retained(functions, device);
  if (known) {
    release(functions, device);  // a reset ends the context and keeps the references to it
    entry->context = context;
  } else {
    entries_.push_back({device, context});
  }
  return context;
}

std::optional<ContextChoice> context_for_host_memory(const Functions& functions, std::optional<int> torch_ordinal) {
  if (const auto device = current_device(functions)) return ContextChoice{ContextOrigin::current, *device};
  if (torch_ordinal) {
    const CUdevice device = device_at(functions, *torch_ordinal);
    if (is_active(functions, device)) return ContextChoice{ContextOrigin::torch, device};
  }
  int count = 0;
  check(functions, functions.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const CUdevice device = device_at(functions, ordinal);
    if (is_active(functions, device)) return ContextChoice{ContextOrigin::other_device, device};
  }
  return std::nullopt;
}

}  // namespace ferry::cuda
