#include "code.hpp"

#include <map>

namespace ferry::litmus {
namespace {

const std::map<cuda::CUresult, const char*> words{
    {1, "INVALID_VALUE"},
    {2, "OUT_OF_MEMORY"},
    {3, "NOT_INITIALIZED"},
    {4, "DEINITIALIZED"},
    {34, "STUB_LIBRARY"},
    {100, "NO_DEVICE"},
    {101, "INVALID_DEVICE"},
    {200, "INVALID_IMAGE"},
    {201, "INVALID_CONTEXT"},
    {209, "NO_BINARY_FOR_GPU"},
    {218, "INVALID_PTX"},
    {222, "UNSUPPORTED_PTX_VERSION"},
    {304, "OPERATING_SYSTEM"},
    {400, "INVALID_HANDLE"},
    {401, "ILLEGAL_STATE"},
    {500, "NOT_FOUND"},
    {600, "NOT_READY"},
    {700, "ILLEGAL_ADDRESS"},
    {709, "CONTEXT_IS_DESTROYED"},
    {712, "HOST_MEMORY_ALREADY_REGISTERED"},
    {713, "HOST_MEMORY_NOT_REGISTERED"},
    {719, "LAUNCH_FAILED"},
    {800, "NOT_PERMITTED"},
    {801, "NOT_SUPPORTED"},
    {803, "SYSTEM_DRIVER_MISMATCH"},
    {900, "STREAM_CAPTURE_UNSUPPORTED"},
    {901, "STREAM_CAPTURE_INVALIDATED"},
    {902, "STREAM_CAPTURE_MERGE"},
    {903, "STREAM_CAPTURE_UNMATCHED"},
    {904, "STREAM_CAPTURE_UNJOINED"},
    {905, "STREAM_CAPTURE_ISOLATION"},
    {906, "STREAM_CAPTURE_IMPLICIT"},
    {907, "CAPTURED_EVENT"},
    {908, "STREAM_CAPTURE_WRONG_THREAD"},
};

}  // namespace

std::string say(cuda::CUresult code) {
  if (code == cuda::success) return "success";
  const auto found = words.find(code);
  return std::to_string(code) + (found == words.end() ? "" : std::string(" ") + found->second);
}

std::string accepted(cuda::CUresult code) { return code == cuda::success ? "success" : "refused"; }

}  // namespace ferry::litmus
