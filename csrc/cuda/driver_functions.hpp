// The functions of the driver that we call: X(name, version, parameters).
//
// The version fixes the signature. A newer number, the driver's own included, may return a function of another
// signature under the same name; so the number is always the one written here.
#pragma once

#include "cuda/driver_types.hpp"

#define FERRY_CUDA_REQUIRED(X)                                                                                   \
  X(cuInit, 2000, (unsigned flags))                                                                              \
  X(cuDriverGetVersion, 2020, (int* version))                                                                    \
  X(cuGetErrorName, 6000, (CUresult code, const char** text))                                                    \
  X(cuGetErrorString, 6000, (CUresult code, const char** text))                                                  \
  X(cuDeviceGet, 2000, (CUdevice * device, int ordinal))                                                         \
  X(cuDeviceGetCount, 2000, (int* count))                                                                        \
  X(cuDeviceGetAttribute, 2000, (int* value, int attribute, CUdevice device))                                    \
  X(cuDeviceGetUuid, 11040, (CUuuid * uuid, CUdevice device))                                                    \
  X(cuDeviceGetPCIBusId, 4010, (char* text, int size, CUdevice device))                                          \
  X(cuDevicePrimaryCtxGetState, 7000, (CUdevice device, unsigned* flags, int* active))                           \
  X(cuDevicePrimaryCtxRetain, 7000, (CUcontext * context, CUdevice device))                                      \
  X(cuDevicePrimaryCtxRelease, 11000, (CUdevice device))                                                         \
  X(cuCtxGetCurrent, 4000, (CUcontext * context))                                                                \
  X(cuCtxPushCurrent, 4000, (CUcontext context))                                                                 \
  X(cuCtxPopCurrent, 4000, (CUcontext * context))                                                                \
  X(cuCtxGetDevice, 2000, (CUdevice * device))                                                                   \
  X(cuCtxGetId, 12000, (CUcontext context, unsigned long long* id))                                              \
  X(cuStreamCreateWithPriority, 5050, (CUstream * stream, unsigned flags, int priority))                         \
  X(cuStreamDestroy, 4000, (CUstream stream))                                                                    \
  X(cuStreamWaitEvent, 3020, (CUstream stream, CUevent event, unsigned flags))                                   \
  X(cuStreamQuery, 2000, (CUstream stream))                                                                      \
  X(cuStreamGetCtx, 9020, (CUstream stream, CUcontext * context))                                                \
  X(cuStreamIsCapturing, 10000, (CUstream stream, int* status))                                                  \
  X(cuStreamGetCaptureInfo, 11030,                                                                               \
    (CUstream stream, int* status, std::uint64_t* id, CUgraph* graph, const CUgraphNode** dependencies,          \
     std::size_t* dependency_count))                                                                             \
  X(cuThreadExchangeStreamCaptureMode, 10010, (int* mode))                                                       \
  X(cuEventCreate, 2000, (CUevent * event, unsigned flags))                                                      \
  X(cuEventDestroy, 4000, (CUevent event))                                                                       \
  X(cuEventRecord, 2000, (CUevent event, CUstream stream))                                                       \
  X(cuEventRecordWithFlags, 11010, (CUevent event, CUstream stream, unsigned flags))                             \
  X(cuEventQuery, 2000, (CUevent event))                                                                         \
  X(cuEventSynchronize, 2000, (CUevent event))                                                                   \
  X(cuMemHostRegister, 6050, (void* data, std::size_t nbytes, unsigned flags))                                   \
  X(cuMemHostUnregister, 4000, (void* data))                                                                     \
  X(cuMemHostGetDevicePointer, 3020, (CUdeviceptr * pointer, void* data, unsigned flags))                        \
  X(cuMemHostAlloc, 2020, (void** data, std::size_t nbytes, unsigned flags))                                     \
  X(cuMemFreeHost, 2000, (void* data))                                                                           \
  X(cuPointerGetAttributes, 7000, (unsigned count, int* attributes, void** values, CUdeviceptr pointer))         \
  X(cuMemcpyDtoHAsync, 3020, (void* destination, CUdeviceptr source, std::size_t nbytes, CUstream stream))       \
  X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr destination, const void* source, std::size_t nbytes, CUstream stream)) \
  X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr destination, CUdeviceptr source, std::size_t nbytes, CUstream stream)) \
  X(cuMemcpy2DAsync, 3020, (const Memcpy2D* copy, CUstream stream))

// All of a group or none of it.
#define FERRY_CUDA_KERNELS(X)                                                                                    \
  X(cuLibraryLoadData, 12000,                                                                                    \
    (CUlibrary * library, const void* image, int* jit_options, void** jit_values, unsigned jit_count,            \
     int* library_options, void** library_values, unsigned library_count))                                       \
  X(cuLibraryUnload, 12000, (CUlibrary library))                                                                 \
  X(cuLibraryGetKernel, 12000, (CUkernel * kernel, CUlibrary library, const char* name))                         \
  X(cuKernelGetFunction, 12000, (CUfunction * function, CUkernel kernel))                                        \
  X(cuLaunchKernel, 4000,                                                                                        \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
     unsigned block_z, unsigned shared_nbytes, CUstream stream, void** parameters, void** extra))                \
  X(cuFuncGetAttribute, 2020, (int* value, int attribute, CUfunction function))

#define FERRY_CUDA_GRAPHS(X)                                                                         \
  X(cuUserObjectCreate, 11030,                                                                       \
    (CUuserObject * object, void* data, CUhostFn destroy, unsigned reference_count, unsigned flags)) \
  X(cuUserObjectRelease, 11030, (CUuserObject object, unsigned count))                               \
  X(cuGraphRetainUserObject, 11030, (CUgraph graph, CUuserObject object, unsigned count, unsigned flags))

#define FERRY_CUDA_STREAM_MEMORY(X)                                                       \
  X(cuMemAllocAsync, 11020, (CUdeviceptr * pointer, std::size_t nbytes, CUstream stream)) \
  X(cuMemFreeAsync, 11020, (CUdeviceptr pointer, CUstream stream))

// Each of these for itself. 13000 would be the newer of cuMemcpyBatchAsync's two signatures; 12080 works on both.
#define FERRY_CUDA_SINGLE(X)                                                                                   \
  X(cuStreamWriteValue32, 11070, (CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned flags))  \
  X(cuCtxRecordEvent, 12050, (CUcontext context, CUevent event))                                               \
  X(cuMemcpyBatchAsync, 12080,                                                                                 \
    (CUdeviceptr * destinations, CUdeviceptr * sources, std::size_t* nbytes, std::size_t count,                \
     CUmemcpyAttributes_st* attributes, std::size_t* attribute_indices, std::size_t attribute_count,           \
     std::size_t* fail_index, CUstream stream))                                                                \
  X(cuMemcpyPeerAsync, 4000,                                                                                   \
    (CUdeviceptr destination, CUcontext destination_context, CUdeviceptr source, CUcontext source_context,     \
     std::size_t nbytes, CUstream stream))                                                                     \
  X(cuMemsetD8Async, 3020, (CUdeviceptr destination, unsigned char value, std::size_t count, CUstream stream)) \
  X(cuEventElapsedTime, 2000, (float* milliseconds, CUevent start, CUevent end))                               \
  X(cuDeviceGetName, 2000, (char* name, int size, CUdevice device))

#define FERRY_CUDA_OPTIONAL(X) \
  FERRY_CUDA_KERNELS(X) FERRY_CUDA_GRAPHS(X) FERRY_CUDA_STREAM_MEMORY(X) FERRY_CUDA_SINGLE(X)

namespace ferry::cuda {

// Required functions are set; an optional one is null where this driver has it not.
struct Functions {
#define FERRY_CUDA_MEMBER(name, version, parameters) CUresult(*name) parameters = nullptr;
  FERRY_CUDA_REQUIRED(FERRY_CUDA_MEMBER)
  FERRY_CUDA_OPTIONAL(FERRY_CUDA_MEMBER)
#undef FERRY_CUDA_MEMBER

  [[nodiscard]] bool have_kernels() const noexcept { return cuLibraryLoadData != nullptr; }
  [[nodiscard]] bool have_graphs() const noexcept { return cuUserObjectCreate != nullptr; }
  [[nodiscard]] bool have_stream_memory() const noexcept { return cuMemAllocAsync != nullptr; }
};

}  // namespace ferry::cuda
