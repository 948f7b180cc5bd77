// The devices' primary contexts, which torch and the CUDA runtime work in.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "cuda/context.hpp"

namespace ferry::cuda {

enum class Primary : unsigned char {
  if_active,  // never create one: it would cost hundreds of MB on a device that nobody named
  create,     // the caller named the device
};

// Retains the primary context of a device when it is first asked for, and keeps it.
// Invariant: one reference is held for each entry, and no more.
class PrimaryContexts {
 public:
  explicit PrimaryContexts(const Driver& driver) noexcept : driver_(driver) {}
  PrimaryContexts(const PrimaryContexts&) = delete;
  PrimaryContexts& operator=(const PrimaryContexts&) = delete;
  // Releases what was retained. The process's own instance is never destroyed: nothing is released at exit.
  ~PrimaryContexts();

  // Nothing where it is inactive and may not be created. After a reset of the device, the new context. Any thread.
  // Throws Error.
  [[nodiscard]] std::optional<ContextIdentity> find(CUdevice device, Primary policy);

 private:
  struct Entry {
    CUdevice device;
    ContextIdentity context;
  };

  const Driver& driver_;
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

// Where registering host memory would get its context from.
enum class ContextOrigin : unsigned char { current, torch, other_device };

struct ContextChoice {
  ContextOrigin origin;
  CUdevice device;
};

// Registering host memory needs a context, but any will do: the current one, else that of torch's current device, else
// that of any device where one is active. Nothing when there is none: the memory is registered when it is first used.
// Creates no context. `torch_ordinal` is set where torch has initialised CUDA. Throws Error.
[[nodiscard]] std::optional<ContextChoice> context_for_host_memory(const Functions& functions,
                                                                   std::optional<int> torch_ordinal);

}  // namespace ferry::cuda
