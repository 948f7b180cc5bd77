// Primary contexts, and the stack of contexts that each thread has.
#include <algorithm>

#include "api.hpp"
#include "call.hpp"

namespace fake {
namespace {

bool has(const World& w, Device device) { return device >= 0 && device < w.settings.devices; }

auto describe(Device device) {
  return [device](World&) { return text(" device=", device); };
}

}  // namespace

Result cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active) {
  return call("cuDevicePrimaryCtxGetState", Needs::init, describe(device), [&](World& w, Lock&) {
    if (flags == nullptr || active == nullptr) return invalid_value;
    if (!has(w, device)) return invalid_device;
    *flags = 0;
    *active = w.primary[static_cast<std::size_t>(device)].alive();
    return success;
  });
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  return call("cuDevicePrimaryCtxRetain", Needs::init, describe(device), [&](World& w, Lock&) {
    if (context == nullptr) return invalid_value;
    if (!has(w, device)) return invalid_device;
    CUctx_st& primary = w.primary[static_cast<std::size_t>(device)];
    if (!primary.alive()) {
      w.activate(primary);
      if (from_product()) ++w.report.counts["contexts_activated"];
    }
    ++primary.references;
    *context = &primary;
    return success;
  });
}

Result cuDevicePrimaryCtxRelease(Device device) {
  return call("cuDevicePrimaryCtxRelease", Needs::init, describe(device), [&](World& w, Lock& lock) {
    if (!has(w, device)) return invalid_device;
    CUctx_st& primary = w.primary[static_cast<std::size_t>(device)];
    if (!primary.alive()) {
      w.report.violation("a primary context was released that nobody had retained");
      return invalid_context;
    }
    if (--primary.references == 0) w.destroy(primary, lock);
    return success;
  });
}

Result cuDevicePrimaryCtxReset(Device device) {
  return call("cuDevicePrimaryCtxReset", Needs::init, describe(device), [&](World& w, Lock& lock) {
    if (!has(w, device)) return invalid_device;
    CUctx_st& primary = w.primary[static_cast<std::size_t>(device)];
    if (!primary.alive()) return success;
    const int references = primary.references - w.green[static_cast<std::size_t>(device)].alive();
    w.destroy(primary, lock);
    w.activate(primary);
    primary.references = references;  // who retained it still holds it, in a new life
    return success;
  });
}

Result cuCtxGetCurrent(Context* context) {
  return call("cuCtxGetCurrent", Needs::init, no_arguments, [&](World& w, Lock&) {
    if (context == nullptr) return invalid_value;
    *context = w.current();
    return success;
  });
}

Result cuCtxSetCurrent(Context context) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of(context)); };
  return call("cuCtxSetCurrent", Needs::init, arguments, [&](World& w, Lock&) {
    auto& thread = w.thread();
    if (context != nullptr && !w.knows(context)) return invalid_context;
    if (from_product() && thread.pushes > 0) {
      w.report.violation("cuCtxSetCurrent replaced a context that was pushed");
    }
    if (!thread.stack.empty()) thread.stack.pop_back();
    if (context != nullptr) thread.stack.push_back(context);
    return success;
  });
}

Result cuCtxPushCurrent(Context context) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of(context)); };
  return call("cuCtxPushCurrent", Needs::init, arguments, [&](World& w, Lock&) {
    if (context == nullptr || !w.knows(context)) return invalid_context;
    if (!context->alive()) return context_is_destroyed;
    auto& thread = w.thread();
    thread.stack.push_back(context);
    ++thread.pushes;
    ++w.pushed;
    return success;
  });
}

Result cuCtxPopCurrent(Context* context) {
  return call("cuCtxPopCurrent", Needs::init, no_arguments, [&](World& w, Lock&) {
    auto& thread = w.thread();
    if (thread.stack.empty()) {
      w.report.violation("a context was popped from an empty stack");
      return invalid_context;
    }
    if (context != nullptr) *context = thread.stack.back();
    thread.stack.pop_back();
    if (thread.pushes == 0) {
      w.report.violation("a context was popped that this thread had not pushed");
    } else {
      --thread.pushes;
      --w.pushed;
    }
    return success;
  });
}

Result cuCtxGetDevice(Device* device) {
  return call("cuCtxGetDevice", Needs::init, no_arguments, [&](World& w, Lock&) {
    if (device == nullptr) return invalid_value;
    const Context context = w.current();
    if (context == nullptr) return invalid_context;
    *device = context->device;
    return success;
  });
}

Result cuCtxGetId(Context context, unsigned long long* id) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of(context)); };
  return call("cuCtxGetId", Needs::init, arguments, [&](World& w, Lock&) {
    const Context asked = context == nullptr ? w.current() : context;
    if (asked == nullptr || !w.knows(asked)) return invalid_context;
    if (id == nullptr) return invalid_value;
    if (!asked->alive()) return context_is_destroyed;
    *id = asked->id;
    return success;
  });
}

Result cuCtxSynchronize() {
  return unsafe_call("cuCtxSynchronize", Needs::context, no_arguments, [&](World& w, Lock& lock) {
    const Context context = w.current();
    const auto taken_in = w.with_green(context);
    if (const Result refused = w.captures.refuse_in(taken_in); refused != success) return refused;
    ++w.report.counts["blocking_waits"];
    const auto live = w.streams.live();
    for (Stream stream : live) {
      if (std::ranges::count(taken_in, stream->context) > 0) w.engine.finish(stream->last, lock);
    }
    return context->error;
  });
}

}  // namespace fake
