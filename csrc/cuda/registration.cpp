#include "cuda/registration.hpp"

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

struct Pages {
  std::byte* data;
  std::size_t nbytes;
};

// Nothing for an empty range, and for one that ends beyond the address space.
std::optional<Pages> pages_of(void* data, std::size_t nbytes) noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first = start / page * page;
  const std::uintptr_t room = UINTPTR_MAX - (page - 1) - start;
  if (nbytes == 0 || start > UINTPTR_MAX - (page - 1) || nbytes > room) return std::nullopt;
  const std::uintptr_t end = (start + nbytes + page - 1) / page * page;
  return Pages{static_cast<std::byte*>(data) - (start - first), end - first};
}

bool can_register_read_only(const Functions& functions, CUdevice device) {
  int supported = 0;
  check(functions, functions.cuDeviceGetAttribute(&supported, attribute_read_only_host_register, device),
        "cuDeviceGetAttribute");
  return supported != 0;
}

std::optional<RegistrationOutcome> outcome_of(CUresult code) noexcept {
  switch (code) {
    case success:
      return RegistrationOutcome::registered;
    case result::invalid_value:
      return RegistrationOutcome::invalid_range;
    case result::out_of_memory:
      return RegistrationOutcome::out_of_memory;
    case result::host_memory_already_registered:
      return RegistrationOutcome::already_registered;
    case result::not_permitted:
      return RegistrationOutcome::not_permitted;
    case result::not_supported:
      return RegistrationOutcome::not_supported;
    default:
      return std::nullopt;
  }
}

// The failure of earlier work, which any call may be answered by. Codes of this call's own leave nothing behind; least
// of all may the registration be ended that somebody else has made of the same memory.
bool may_be_done_all_the_same(CUresult code) noexcept {
  const auto outcome = outcome_of(code);
  return !outcome || *outcome == RegistrationOutcome::out_of_memory;
}

}  // namespace

Registration::Registration(Registration&& other) noexcept
    : driver_(other.driver_),
      context_(other.context_),
      data_(std::exchange(other.data_, nullptr)),
      nbytes_(std::exchange(other.nbytes_, 0)) {}

Registration::~Registration() { report_cleanup(release(), "cuMemHostUnregister"); }

CUdeviceptr Registration::device_pointer() const {
  const Functions& functions = driver_.functions();
  CUdeviceptr pointer = 0;
  check(functions, functions.cuMemHostGetDevicePointer(&pointer, data_, 0), "cuMemHostGetDevicePointer");
  return pointer;
}

CUresult Registration::release() noexcept {
  std::byte* const data = std::exchange(data_, nullptr);
  nbytes_ = 0;
  const Functions* functions = driver_.functions_if_usable();
  if (data == nullptr || functions == nullptr) return success;
  unsigned long long id = 0;
  const CUresult state = functions->cuCtxGetId(context_.handle, &id);
  // A reset has unregistered what was registered in the context.
  const bool ended = state == result::invalid_context || state == result::context_is_destroyed ||
                     (state == success && id != context_.id);
  if (ended || state != success) return ended ? success : state;
  CUcontext current = nullptr;
  std::optional<PushedContext> pushed;  // any context will do
  if (functions->cuCtxGetCurrent(&current) == success && current == nullptr) pushed.emplace(driver_, context_.handle);
  const RelaxedCapture relaxed(*functions, std::nothrow);
  return functions->cuMemHostUnregister(data);
}

RegistrationAttempt register_host(const ContextScope& scope, void* data, std::size_t nbytes, HostAccess access) {
  const Functions& functions = scope.driver().functions();
  const std::optional<Pages> pages = pages_of(data, nbytes);
  if (!pages) return {RegistrationOutcome::invalid_range, result::invalid_value, std::nullopt};
  unsigned flags = memhostregister_portable | memhostregister_devicemap;
  if (access == HostAccess::read_only) {
    if (!can_register_read_only(functions, scope.device())) {
      return {RegistrationOutcome::not_supported, result::not_supported, std::nullopt};
    }
    flags |= memhostregister_read_only;
  }
  CUresult code = success;
  {
    const RelaxedCapture relaxed(functions);
    code = functions.cuMemHostRegister(pages->data, pages->nbytes, flags);
  }
  const std::optional<RegistrationOutcome> outcome = outcome_of(code);
  if (may_be_done_all_the_same(code)) {
    const RelaxedCapture relaxed(functions);
    static_cast<void>(functions.cuMemHostUnregister(pages->data));  // refused where there is nothing to undo
  }
  if (!outcome) throw driver_error(functions, code, "cuMemHostRegister");
  if (code != success) return {*outcome, code, std::nullopt};
  return {*outcome, code, Registration(scope, pages->data, pages->nbytes)};
}

}  // namespace ferry::cuda
