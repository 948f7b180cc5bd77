#include "cuda/stream.hpp"

#include <string>
#include <utility>

#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

constexpr std::int64_t no_order = -1;

}  // namespace

std::optional<CUstream> stream_from_dlpack(std::int64_t value) {
  if (value == no_order) return std::nullopt;
  if (value <= 0) {
    throw Error(
        ErrorKind::device, "stream=" + std::to_string(value),
        value == 0 ? "DLPack forbids 0: it does not say which default stream is meant"
                   : "no stream has a negative handle",
        "pass 1 for the legacy default stream, 2 for the per-thread one, -1 for no order, or a stream's handle");
  }
  return reinterpret_cast<CUstream>(static_cast<std::uintptr_t>(value));
}

CUcontext context_of(const Functions& functions, CUstream stream) {
  CUcontext context = nullptr;
  check(functions, functions.cuStreamGetCtx(stream, &context), "cuStreamGetCtx");
  return context;
}

void order_after(const Functions& functions, CUstream stream, CUevent event) {
  check(functions, functions.cuStreamWaitEvent(stream, event, 0), "cuStreamWaitEvent");
}

OwnedStream::OwnedStream(const ContextScope& scope) : driver_(scope.driver()), context_(scope.context()) {
  // Priorities have no effect on copies between host and device.
  const Functions& functions = driver_.functions();
  const CUresult code = functions.cuStreamCreateWithPriority(&handle_, stream_non_blocking, 0);
  if (code == success) return;
  // The answer may be that of earlier work, and the stream made all the same.
  if (handle_ != nullptr) report_cleanup(functions.cuStreamDestroy(handle_), "cuStreamDestroy");
  throw driver_error(functions, code, "cuStreamCreateWithPriority");
}

OwnedStream::OwnedStream(OwnedStream&& other) noexcept
    : driver_(other.driver_), context_(other.context_), handle_(std::exchange(other.handle_, nullptr)) {}

OwnedStream::~OwnedStream() {
  const Functions* functions = driver_.functions_if_usable();
  if (handle_ == nullptr || functions == nullptr || !is_alive(*functions, context_)) return;
  report_cleanup(functions->cuStreamDestroy(handle_), "cuStreamDestroy");
}

}  // namespace ferry::cuda
