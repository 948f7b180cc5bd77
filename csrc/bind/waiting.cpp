#include "bind/waiting.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "cuda/runtime.hpp"

namespace ferry::bind {
namespace {

// Once more the context that is current: a handler may make another one current, which must not end up in the place of
// one that was pushed for our own calls.
class CoveredContext {
 public:
  CoveredContext() noexcept {
    cuda::Runtime* const used = cuda::runtime_if_used();
    functions_ = used == nullptr ? nullptr : used->driver().functions_if_usable();
    cuda::CUcontext current = nullptr;
    pushed_ = functions_ != nullptr && functions_->cuCtxGetCurrent(&current) == cuda::success && current != nullptr &&
              functions_->cuCtxPushCurrent(current) == cuda::success;
  }
  CoveredContext(const CoveredContext&) = delete;
  CoveredContext& operator=(const CoveredContext&) = delete;
  ~CoveredContext() {
    cuda::CUcontext covering = nullptr;
    if (pushed_) static_cast<void>(functions_->cuCtxPopCurrent(&covering));
  }

 private:
  const cuda::Functions* functions_;
  bool pushed_;
};

bool signal_handler_raised() {
  const CoveredContext covered;
  bool raised = false;
  with_gil([&raised] { raised = PyErr_CheckSignals() != 0; });
  return raised;
}

// Where the interpreter was started, in all but embedding programs.
bool is_first_thread() noexcept { return ::syscall(SYS_gettid) == ::getpid(); }

}  // namespace

InterruptibleWaits::Ask ask_of_this_thread() noexcept { return is_first_thread() ? &signal_handler_raised : nullptr; }

}  // namespace ferry::bind
