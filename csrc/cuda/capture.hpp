// Graph captures, which belong to somebody else and must survive us.
#pragma once

#include <new>

#include "cuda/driver_functions.hpp"

namespace ferry::cuda {

// While it lives, calls of this thread that are unsafe during a capture (querying or waiting for an event, querying a
// stream, registering, allocating, freeing, loading) do not destroy the captures of others. Keep it to those calls.
class RelaxedCapture {
 public:
  // Throws Error when the driver refuses: the unsafe call must not be made then.
  explicit RelaxedCapture(const Functions& functions);
  // For destructors.
  RelaxedCapture(const Functions& functions, std::nothrow_t) noexcept;
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

  // False only where the driver refused and nothing may throw.
  [[nodiscard]] bool relaxed() const noexcept { return answer_ == success; }

 private:
  const Functions& functions_;
  int mode_;  // the thread's mode before
  CUresult answer_;
};

enum class CaptureState : unsigned char {
  none,
  active,
  invalidated,
  implicit,  // asked about the legacy stream while a blocking stream of its context is capturing: no work may go there
};

// Is this stream capturing? Safe during captures. Throws Error.
[[nodiscard]] CaptureState capture_state(const Functions& functions, CUstream stream);

}  // namespace ferry::cuda
