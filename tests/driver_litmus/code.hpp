// The driver's answers in words, and those codes that the product has no name for.
#pragma once

#include <string>

#include "cuda/driver_types.hpp"

namespace ferry::litmus {

namespace result {
using namespace ferry::cuda::result;
inline constexpr cuda::CUresult invalid_device = 101;
inline constexpr cuda::CUresult invalid_handle = 400;
inline constexpr cuda::CUresult host_memory_not_registered = 713;
inline constexpr cuda::CUresult stream_capture_merge = 902;
inline constexpr cuda::CUresult stream_capture_unmatched = 903;
inline constexpr cuda::CUresult stream_capture_unjoined = 904;
inline constexpr cuda::CUresult stream_capture_isolation = 905;
}  // namespace result

// "success", or "400 INVALID_HANDLE". The words are ours: the driver's own are asked about, not used.
[[nodiscard]] std::string say(cuda::CUresult code);

// "success", or "refused" for any other code: where only that much is assumed.
[[nodiscard]] std::string accepted(cuda::CUresult code);

}  // namespace ferry::litmus
