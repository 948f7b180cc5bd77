#include "cuda/capture.hpp"

#include "cuda/driver_error.hpp"

namespace ferry::cuda {

RelaxedCapture::RelaxedCapture(const Functions& functions, std::nothrow_t) noexcept
    : functions_(functions), mode_(capture_mode_relaxed), answer_(functions.cuThreadExchangeStreamCaptureMode(&mode_)) {
  // The answer may be that of earlier work, and the modes exchanged all the same.
  if (answer_ != success && mode_ != capture_mode_relaxed) {
    report_cleanup(functions_.cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
  }
}

RelaxedCapture::RelaxedCapture(const Functions& functions) : RelaxedCapture(functions, std::nothrow) {
  // The destructor runs from here on, since the constructor delegated to has finished.
  check(functions, answer_, "cuThreadExchangeStreamCaptureMode");
}

RelaxedCapture::~RelaxedCapture() {
  if (relaxed()) {
    report_cleanup(functions_.cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode");
  }
}

CaptureState capture_state(const Functions& functions, CUstream stream) {
  int status = capture_status_none;
  const CUresult code = functions.cuStreamIsCapturing(stream, &status);
  if (code == result::stream_capture_implicit) return CaptureState::implicit;
  check(functions, code, "cuStreamIsCapturing");
  switch (status) {
    case capture_status_none:
      return CaptureState::none;
    case capture_status_active:
      return CaptureState::active;
    default:
      return CaptureState::invalidated;
  }
}

}  // namespace ferry::cuda
