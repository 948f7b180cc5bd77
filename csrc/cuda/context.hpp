// Contexts: which one is current, is it still the same one, and making the right one current for a moment.
#pragma once

#include <optional>

#include "cuda/driver.hpp"
#include "cuda/pushed_context.hpp"

namespace ferry::cuda {

class PrimaryContexts;
enum class Primary : unsigned char;

// A handle can be reused after a device reset; an id never is.
struct ContextIdentity {
  CUcontext handle = nullptr;
  unsigned long long id = 0;

  friend bool operator==(const ContextIdentity&, const ContextIdentity&) = default;
};

// Throws Error.
[[nodiscard]] ContextIdentity identity_of(const Functions& functions, CUcontext context);

// False once the device was reset: everything that was made in the context is gone then, and no handle may be used.
[[nodiscard]] bool is_alive(const Functions& functions, const ContextIdentity& context) noexcept;

// This thread's context, null where it has none. Throws Error.
[[nodiscard]] CUcontext current_context(const Functions& functions);

// The device of this thread's context, where it has one. Throws Error.
[[nodiscard]] std::optional<CUdevice> current_device(const Functions& functions);

// While it lives, a context of `device` is current in this thread. If the current one belongs to the device it stays:
// special stream handles mean the streams of the current context, and a green context has its own. Otherwise the
// primary context is pushed, and popped at the end; run no foreign code meanwhile, since it may set the current
// context.
class ContextScope {
 public:
  // Throws Error, with nothing pushed: what the driver answers, and where the primary context is inactive and `policy`
  // does not allow to create it.
  ContextScope(const Driver& driver, PrimaryContexts& primaries, CUdevice device, Primary policy);
  // This very context, to go on with what was begun in it. Throws Error when it was reset since.
  ContextScope(const Driver& driver, CUdevice device, const ContextIdentity& context);
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] CUdevice device() const noexcept { return device_; }
  [[nodiscard]] const ContextIdentity& context() const noexcept { return context_; }
  [[nodiscard]] bool pushed() const noexcept { return pushed_.pushed(); }

 private:
  void push();

  const Driver& driver_;
  CUdevice device_;
  ContextIdentity context_;
  PushedContext pushed_;
};

}  // namespace ferry::cuda
