// What is kept of CUDA between calls: the driver, the contexts, the events, and the streams that we copy on.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cuda/event.hpp"
#include "cuda/foreign_streams.hpp"
#include "cuda/kernel_library.hpp"
#include "cuda/primary_contexts.hpp"
#include "cuda/stream.hpp"

namespace ferry::cuda {

enum class Direction : unsigned char {
  to_host,
  to_device,
  ordering,  // given to producers that order their work before it, so that their capture may reach into it
};

// Any thread. Nothing is made before it is asked for.
class Runtime {
 public:
  static constexpr std::size_t copy_streams_per_direction = 4;

  // The driver must be initialised and outlive the runtime.
  explicit Runtime(const Driver& driver);
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  // Nothing of it may be in use. The process's own instance is never destroyed.
  ~Runtime();

  [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
  [[nodiscard]] const Functions& functions() const { return driver_.functions(); }
  [[nodiscard]] PrimaryContexts& primaries() noexcept { return primaries_; }
  [[nodiscard]] EventPool& events() noexcept { return events_; }

  // A context of this device, current in this thread while the scope lives. Throws Error.
  [[nodiscard]] ContextScope enter(int device, Primary policy = Primary::if_active) {
    return {driver_, primaries_, device, policy};
  }

  // One of our streams of the scope's context: the same for the same producer's stream, others for others as far as
  // there are any, so that a slow producer does not hold up everybody's copies. Throws Error.
  [[nodiscard]] CUstream copy_stream(const ContextScope& scope, Direction direction, CUstream producer);

  // Our kernels in the scope's context, else null: kernel_status says why, and everything works without. The first call
  // for a context loads them, unless `stream` is capturing.
  [[nodiscard]] const Kernels* kernels(const ContextScope& scope, std::optional<CUstream> stream = std::nullopt) {
    return kernels_.find_or_load(scope, stream);
  }
  [[nodiscard]] KernelStatus kernel_status(const ContextIdentity& context) const { return kernels_.status(context); }

  // Every stream of ours in this context, for fences.
  [[nodiscard]] std::vector<CUstream> own_streams(const ContextIdentity& context) const;

  // Streams of others that a fence on this device must cover besides the legacy stream and ours (torch's pool
  // streams). False while the device has no active context, and so no streams. Throws Error.
  bool add_foreign_streams(int device, const std::vector<CUstream>& streams);
  [[nodiscard]] std::vector<CUstream> foreign_streams(int device) const { return foreign_.of(device, functions()); }
  [[nodiscard]] ForeignStreams& foreign() noexcept { return foreign_; }

 private:
  struct Served {
    CUstream producer;
    std::thread::id thread;  // tells per-thread default streams apart
    OwnedStream stream;
  };
  struct CopyStreams {
    ContextIdentity context;
    Direction direction;
    std::vector<Served> streams;
  };

  [[nodiscard]] std::optional<CUstream> known_stream(const ContextIdentity& context, Direction direction,
                                                     CUstream producer);

  const Driver& driver_;
  PrimaryContexts primaries_;
  EventPool events_;
  KernelLibrary kernels_;
  mutable std::mutex mutex_;
  std::vector<CopyStreams> copy_streams_;
  ForeignStreams foreign_;
};

// The process's own, made by the first call. Throws Error where there is no driver to work with.
[[nodiscard]] Runtime& runtime();

// The same, null while nobody has made it, and in a forked child.
[[nodiscard]] Runtime* runtime_if_used() noexcept;

}  // namespace ferry::cuda
