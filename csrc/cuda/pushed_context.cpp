#include "cuda/pushed_context.hpp"

#include "core/mutation.hpp"
#include "cuda/driver_error.hpp"

namespace ferry::cuda {

void PushedContext::push(CUcontext context) noexcept {
  context_ = context;
  const Functions* functions = driver_.functions_if_usable();
  if (functions == nullptr) {
    code_ = result::not_initialized;
    return;
  }
  CUcontext current = nullptr;
  code_ = functions->cuCtxGetCurrent(&current);
  if (code_ != success || current == context_) return;
  code_ = functions->cuCtxPushCurrent(context_);
  pushed_ = code_ == success || is_current(*functions);
}

PushedContext::~PushedContext() {
  const Functions* functions = driver_.functions_if_usable();
  if (!pushed_ || functions == nullptr || mutated(Mutation::leave_context_pushed)) return;
  CUcontext popped = nullptr;
  CUresult code = functions->cuCtxPopCurrent(&popped);
  report_cleanup(code == success && popped != context_ ? result::invalid_context : code, "cuCtxPopCurrent");
  if (code == success || code == result::deinitialized || !is_current(*functions)) return;
  code = functions->cuCtxPopCurrent(&popped);
  report_cleanup(code, "cuCtxPopCurrent");
}

bool PushedContext::is_current(const Functions& functions) const noexcept {
  CUcontext current = nullptr;
  return functions.cuCtxGetCurrent(&current) == success && current == context_;
}

}  // namespace ferry::cuda
