#include "cuda/driver_error.hpp"

#include <mutex>
#include <string>

namespace ferry::cuda {
namespace {

using Text = CUresult (*)(CUresult, const char**);

std::string words(Text function, CUresult code) {
  const char* text = nullptr;
  return function != nullptr && function(code, &text) == success && text != nullptr ? text : "";
}

std::string answer(const Functions& functions, CUresult code) {
  const std::string name = words(functions.cuGetErrorName, code);
  const std::string text = words(functions.cuGetErrorString, code);
  return "the driver answered " + std::to_string(code) + (name.empty() ? "" : ", " + name) +
         (text.empty() ? "" : " (" + text + ")");
}

const char* what_to_do(CUresult code) noexcept {
  switch (code) {
    case result::out_of_memory:
      return "free device or pinned memory, or move less at a time";
    case result::deinitialized:
      return "finish transfers before the process ends";
    case result::invalid_context:
    case result::context_is_destroyed:
      return "do not reset a device while arrays and transfers use it";
    case result::stream_capture_unsupported:
    case result::stream_capture_invalidated:
    case result::stream_capture_implicit:
    case result::captured_event:
    case result::stream_capture_wrong_thread:
      return "call it before the graph capture begins or after it has ended";
    case result::not_permitted:
    case result::not_supported:
      return "see `tensorferry doctor` for what this machine supports";
    default:
      return "report it together with what `tensorferry doctor --json` prints";
  }
}

std::mutex reporting;
CleanupReport reported{0, success, ""};

}  // namespace

bool is_sticky(CUresult code) noexcept {
  switch (code) {
    case result::ecc_uncorrectable:
    case result::nvlink_uncorrectable:
    case result::contained:
    case result::illegal_address:
    case result::launch_timeout:
    case result::device_assert:
    case result::hardware_stack_error:
    case result::illegal_instruction:
    case result::misaligned_address:
    case result::invalid_address_space:
    case result::invalid_pc:
    case result::launch_failed:
    case result::tensor_memory_leak:
    case result::mps_client_terminated:
      return true;
    default:
      return false;
  }
}

Error driver_error(const Functions& functions, CUresult code, const char* call) {
  const std::string says = answer(functions, code);
  if (is_sticky(code)) {
    return {ErrorKind::device, call, "an earlier operation on this device failed: " + says,
            "find that operation with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer, and start a new process: no call "
            "works on this device any more in this one"};
  }
  if (code == result::deinitialized)
    return {ErrorKind::device, call, "the process is ending: " + says, what_to_do(code)};
  return {ErrorKind::device, call, says, what_to_do(code)};
}

void report_cleanup(CUresult code, const char* call) noexcept {
  if (code == success || code == result::deinitialized) return;
  const std::lock_guard lock(reporting);
  reported = {reported.failures + 1, code, call};
}

CleanupReport cleanup_report() noexcept {
  const std::lock_guard lock(reporting);
  return reported;
}

}  // namespace ferry::cuda
