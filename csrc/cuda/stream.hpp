// Stream handles: what integers and pointers of others mean, and streams of our own.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/context.hpp"

namespace ferry::cuda {

// The two default streams of the current context, never called NULL: what that means depends on how a caller was built.
[[nodiscard]] inline CUstream legacy_stream() noexcept { return reinterpret_cast<CUstream>(std::uintptr_t{1}); }
[[nodiscard]] inline CUstream per_thread_stream() noexcept { return reinterpret_cast<CUstream>(std::uintptr_t{2}); }

// A DLPack integer: 1 legacy, 2 per thread, -1 no order (nothing), else a handle. Throws Error for others: 0 is
// forbidden, since it does not say which default stream is meant.
[[nodiscard]] std::optional<CUstream> stream_from_dlpack(std::int64_t value);

// What current_work_stream of an exchange table gives: NULL for the legacy default stream.
[[nodiscard]] inline CUstream stream_from_table(void* handle) noexcept {
  return handle == nullptr ? legacy_stream() : static_cast<CUstream>(handle);
}

// Does the handle mean another stream in another thread? No other thread may finish what was begun on it.
[[nodiscard]] inline bool belongs_to_calling_thread(CUstream stream) noexcept { return stream == per_thread_stream(); }

// The context that a stream belongs to; for the default streams, the current one. Throws Error.
[[nodiscard]] CUcontext context_of(const Functions& functions, CUstream stream);

// Orders later work of `stream` after what `event` recorded last. Never blocks the host. Throws Error.
void order_after(const Functions& functions, CUstream stream, CUevent event);

// A stream of our own, not ordered with the legacy stream.
class OwnedStream {
 public:
  // In the scope's context. Throws Error.
  explicit OwnedStream(const ContextScope& scope);
  OwnedStream(OwnedStream&& other) noexcept;
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  OwnedStream& operator=(OwnedStream&&) = delete;
  ~OwnedStream();  // does not wait: the driver finishes the stream's work first

  [[nodiscard]] CUstream handle() const noexcept { return handle_; }
  [[nodiscard]] const ContextIdentity& context() const noexcept { return context_; }

 private:
  const Driver& driver_;
  ContextIdentity context_;
  CUstream handle_ = nullptr;
};

}  // namespace ferry::cuda
