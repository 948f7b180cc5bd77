#include "symbols.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "api.hpp"
#include "call.hpp"

namespace fake {

Result cuGetProcAddress(const char* name, void** function, int version, u64 flags) {
  return find_symbol(name, version, flags, function, nullptr);
}
Result cuGetProcAddress_v2(const char* name, void** function, int version, u64 flags, int* status) {
  return find_symbol(name, version, flags, function, status);
}

namespace {

template <auto Function>
struct PerThread;
template <class... Arguments, Result (*Function)(Arguments...)>
struct PerThread<Function> {
  static Result call(Arguments... arguments) {
    bool& meaning = null_is_per_thread();
    meaning = true;
    const Result result = Function(arguments...);
    meaning = false;
    return result;
  }
};

// Signatures under the same name that the product must never get. Called anyway, they say so and do nothing: on a real
// driver they would read arguments that nobody passed.
constexpr std::array wrong_names{"cuDevicePrimaryCtxRelease before 11.0",
                                 "cuCtxPushCurrent before 4.0",
                                 "cuCtxPopCurrent before 4.0",
                                 "cuCtxGetDevice of 13.0",
                                 "cuStreamDestroy before 4.0",
                                 "cuEventDestroy before 4.0",
                                 "cuStreamGetCtx of 12.5",
                                 "cuStreamGetCaptureInfo of 10.1",
                                 "cuStreamGetCaptureInfo of 12.3",
                                 "cuMemHostRegister of 4.0",
                                 "cuMemHostGetDevicePointer before 3.2",
                                 "cuMemcpyDtoHAsync before 3.2",
                                 "cuMemcpyHtoDAsync before 3.2",
                                 "cuMemcpyDtoDAsync before 3.2",
                                 "cuMemcpy2DAsync before 3.2",
                                 "cuDeviceGetUuid before 11.4",
                                 "cuMemAlloc before 3.2",
                                 "cuMemFree before 3.2",
                                 "cuEventElapsedTime of 12.8",
                                 "cuDevicePrimaryCtxReset before 11.0",
                                 "cuCtxSynchronize of 13.0",
                                 "cuStreamBeginCapture of 10.0",
                                 "cuGraphInstantiate before 12.0",
                                 "cuStreamWriteValue32 of 8.0",
                                 "cuMemcpyBatchAsync of 13.0"};
template <std::size_t I>
Result wrong() {
  World& w = world();
  Lock lock(w.mutex);
  w.report.violation(text("the wrong signature was called: ", wrong_names[I]));
  return unknown_error;
}

template <auto Function>
void* plain() {
  return reinterpret_cast<void*>(Function);
}
template <auto Function>
void* own() {
  return reinterpret_cast<void*>(&PerThread<Function>::call);
}

#define PLAIN(name, version) \
  Symbol { #name, version, plain<&name>(), nullptr }
#define STREAM(name, version) \
  Symbol { #name, version, plain<&name>(), own<&name>() }
#define WRONG(name, version, i) \
  Symbol { #name, version, plain<&wrong<i>>(), nullptr }

const Symbol all[] = {
    PLAIN(cuGetProcAddress, 11030),
    Symbol{"cuGetProcAddress", 12000, plain<&cuGetProcAddress_v2>(), nullptr},
    PLAIN(cuInit, 2000),
    PLAIN(cuDriverGetVersion, 2020),
    PLAIN(cuGetErrorName, 6000),
    PLAIN(cuGetErrorString, 6000),
    PLAIN(cuDeviceGet, 2000),
    PLAIN(cuDeviceGetCount, 2000),
    PLAIN(cuDeviceGetName, 2000),
    PLAIN(cuDeviceGetAttribute, 2000),
    WRONG(cuDeviceGetUuid, 9020, 15),
    PLAIN(cuDeviceGetUuid, 11040),
    PLAIN(cuDeviceGetPCIBusId, 4010),
    PLAIN(cuDevicePrimaryCtxGetState, 7000),
    PLAIN(cuDevicePrimaryCtxRetain, 7000),
    WRONG(cuDevicePrimaryCtxRelease, 7000, 0),
    PLAIN(cuDevicePrimaryCtxRelease, 11000),
    WRONG(cuDevicePrimaryCtxReset, 7000, 19),
    PLAIN(cuDevicePrimaryCtxReset, 11000),
    PLAIN(cuCtxGetCurrent, 4000),
    PLAIN(cuCtxSetCurrent, 4000),
    WRONG(cuCtxPushCurrent, 2000, 1),
    PLAIN(cuCtxPushCurrent, 4000),
    WRONG(cuCtxPopCurrent, 2000, 2),
    PLAIN(cuCtxPopCurrent, 4000),
    PLAIN(cuCtxGetDevice, 2000),
    WRONG(cuCtxGetDevice, 13000, 3),
    PLAIN(cuCtxGetId, 12000),
    PLAIN(cuCtxSynchronize, 2000),
    WRONG(cuCtxSynchronize, 13000, 20),
    PLAIN(cuCtxRecordEvent, 12050),
    PLAIN(cuStreamCreate, 2000),
    PLAIN(cuStreamCreateWithPriority, 5050),
    WRONG(cuStreamDestroy, 2000, 4),
    PLAIN(cuStreamDestroy, 4000),
    STREAM(cuStreamWaitEvent, 3020),
    STREAM(cuStreamQuery, 2000),
    STREAM(cuStreamSynchronize, 2000),
    STREAM(cuStreamGetCtx, 9020),
    WRONG(cuStreamGetCtx, 12050, 6),
    STREAM(cuStreamGetPriority, 5050),
    STREAM(cuStreamGetFlags, 5050),
    WRONG(cuStreamWriteValue32, 8000, 23),
    STREAM(cuStreamWriteValue32, 11070),
    WRONG(cuStreamBeginCapture, 10000, 21),
    STREAM(cuStreamBeginCapture, 10010),
    STREAM(cuStreamEndCapture, 10000),
    STREAM(cuStreamIsCapturing, 10000),
    WRONG(cuStreamGetCaptureInfo, 10010, 7),
    STREAM(cuStreamGetCaptureInfo, 11030),
    WRONG(cuStreamGetCaptureInfo, 12030, 8),
    PLAIN(cuThreadExchangeStreamCaptureMode, 10010),
    WRONG(cuGraphInstantiate, 10000, 22),
    PLAIN(cuGraphInstantiate, 12000),
    Symbol{"cuGraphInstantiateWithFlags", 11040, plain<&cuGraphInstantiate>(), nullptr},
    STREAM(cuGraphLaunch, 10000),
    PLAIN(cuGraphDestroy, 10000),
    PLAIN(cuGraphExecDestroy, 10000),
    PLAIN(cuUserObjectCreate, 11030),
    PLAIN(cuUserObjectRetain, 11030),
    PLAIN(cuUserObjectRelease, 11030),
    PLAIN(cuGraphRetainUserObject, 11030),
    PLAIN(cuEventCreate, 2000),
    WRONG(cuEventDestroy, 2000, 5),
    PLAIN(cuEventDestroy, 4000),
    STREAM(cuEventRecord, 2000),
    STREAM(cuEventRecordWithFlags, 11010),
    PLAIN(cuEventQuery, 2000),
    PLAIN(cuEventSynchronize, 2000),
    PLAIN(cuEventElapsedTime, 2000),
    WRONG(cuEventElapsedTime, 12080, 18),
    WRONG(cuMemAlloc, 2000, 16),
    PLAIN(cuMemAlloc, 3020),
    WRONG(cuMemFree, 2000, 17),
    PLAIN(cuMemFree, 3020),
    STREAM(cuMemAllocAsync, 11020),
    STREAM(cuMemFreeAsync, 11020),
    WRONG(cuMemHostRegister, 4000, 9),
    PLAIN(cuMemHostRegister, 6050),
    PLAIN(cuMemHostUnregister, 4000),
    WRONG(cuMemHostGetDevicePointer, 2020, 10),
    PLAIN(cuMemHostGetDevicePointer, 3020),
    PLAIN(cuMemHostAlloc, 2020),
    PLAIN(cuMemFreeHost, 2000),
    PLAIN(cuPointerGetAttributes, 7000),
    WRONG(cuMemcpyDtoHAsync, 2000, 11),
    STREAM(cuMemcpyDtoHAsync, 3020),
    WRONG(cuMemcpyHtoDAsync, 2000, 12),
    STREAM(cuMemcpyHtoDAsync, 3020),
    WRONG(cuMemcpyDtoDAsync, 3000, 13),
    STREAM(cuMemcpyDtoDAsync, 3020),
    WRONG(cuMemcpy2DAsync, 2000, 14),
    STREAM(cuMemcpy2DAsync, 3020),
    STREAM(cuMemcpyPeerAsync, 4000),
    STREAM(cuMemcpyBatchAsync, 12080),
    WRONG(cuMemcpyBatchAsync, 13000, 24),
    STREAM(cuMemsetD8Async, 3020),
    PLAIN(cuLibraryLoadData, 12000),
    PLAIN(cuLibraryUnload, 12000),
    PLAIN(cuLibraryGetKernel, 12000),
    PLAIN(cuKernelGetFunction, 12000),
    PLAIN(cuFuncGetAttribute, 2020),
    STREAM(cuLaunchKernel, 4000),
};

#undef PLAIN
#undef STREAM
#undef WRONG

constexpr int first_per_thread = 7000;  // older requests know no such variants

}  // namespace

std::span<const Symbol> symbols() { return all; }

Result find_symbol(const char* name, int version, u64 flags, void** function, int* status) {
  World& w = world();
  Lock lock(w.mutex);
  if (name == nullptr || function == nullptr || flags > search_per_thread) return invalid_value;
  w.report.requests.push_back(text(name, " ", version, " ", flags));
  *function = nullptr;
  if (version > w.settings.driver_version) return invalid_value;
  int answer = no_such_symbol;
  for (const Symbol& symbol : all) {
    if (std::strcmp(symbol.name, name) != 0 || symbol.version > w.settings.driver_version) continue;
    if (answer == no_such_symbol) answer = version_too_small;
    if (symbol.version > version) continue;
    const bool own = flags == search_per_thread && symbol.per_thread != nullptr && version >= first_per_thread;
    *function = own ? symbol.per_thread : symbol.function;
    answer = found_symbol;
  }
  if (w.settings.missing.contains(name)) {  // success may carry NULL
    *function = nullptr;
    answer = no_such_symbol;
  }
  if (status != nullptr) *status = answer;
  return success;
}

}  // namespace fake
