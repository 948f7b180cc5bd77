#include "framework.hpp"

namespace fake {

CUctx_st& framework_context(World& w, Device device) {
  if (w.owner == 0) w.owner = getpid();
  w.initialized = true;
  CUctx_st& primary = w.primary[static_cast<std::size_t>(device)];
  if (!primary.alive()) {
    w.activate(primary);
    primary.references = 1;
  }
  return w.settings.green_context ? w.green_context(device) : primary;
}

AsFramework::AsFramework(World& w, Device device, const char* what)
    : thread_(w.thread()), was_test_(caller_is_test()), was_calling_(std::move(current_call())) {
  thread_.stack.push_back(&framework_context(w, device));
  caller_is_test() = true;
  current_call() = what;
}

AsFramework::~AsFramework() {
  thread_.stack.pop_back();
  caller_is_test() = was_test_;
  current_call() = std::move(was_calling_);
}

}  // namespace fake
