// Whether host memory can be pinned in this process now.
#pragma once

#include <optional>
#include <string>

namespace ferry::bind {

struct HostContext {
  std::optional<int> device;  // whose context to pin in
  std::string obstacle;       // why there is none and will be none; empty where one may come
};

// Looks for a context that somebody has made. Initialises nothing and creates none. `torch_device` is torch's current
// device where torch has initialised CUDA. Call it without the GIL. Throws nothing.
[[nodiscard]] HostContext context_for_pinning(std::optional<int> torch_device);

}  // namespace ferry::bind
