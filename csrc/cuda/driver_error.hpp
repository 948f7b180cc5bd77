// What a function of the driver answered, as an error in the driver's own words.
#pragma once

#include <cstdint>

#include "core/error.hpp"
#include "cuda/driver_functions.hpp"

namespace ferry::cuda {

// Why `call` failed. Never an error itself: where the driver has no words, the code stands alone.
[[nodiscard]] Error driver_error(const Functions& functions, CUresult code, const char* call);

// Throws driver_error unless the answer is success. Costs one comparison on the good path.
inline void check(const Functions& functions, CUresult code, const char* call) {
  if (code != success) [[unlikely]] {
    throw driver_error(functions, code, call);
  }
}

// Is it the failure of earlier work, which every later call on that device returns again?
[[nodiscard]] bool is_sticky(CUresult code) noexcept;

// For destructors, which report and never throw. The end of the process (code 4) is no failure.
void report_cleanup(CUresult code, const char* call) noexcept;

struct CleanupReport {
  std::uint64_t failures;  // since the process began
  CUresult last_code;      // of the last failure; success where there was none
  const char* last_call;
};
[[nodiscard]] CleanupReport cleanup_report() noexcept;

}  // namespace ferry::cuda
