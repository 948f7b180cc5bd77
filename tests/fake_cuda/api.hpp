// The functions of the driver, as the table of symbols names them. Names and arguments are those of cuda.h.
#pragma once

#include "types.hpp"

namespace fake {

Result cuInit(unsigned flags);
Result cuDriverGetVersion(int* version);
Result cuGetErrorName(Result error, const char** text);
Result cuGetErrorString(Result error, const char** text);
Result cuDeviceGet(Device* device, int ordinal);
Result cuDeviceGetCount(int* count);
Result cuDeviceGetName(char* name, int size, Device device);
Result cuDeviceGetAttribute(int* value, int attribute, Device device);
Result cuDeviceGetUuid(Uuid* uuid, Device device);
Result cuDeviceGetPCIBusId(char* id, int size, Device device);

Result cuDevicePrimaryCtxGetState(Device device, unsigned* flags, int* active);
Result cuDevicePrimaryCtxRetain(Context* context, Device device);
Result cuDevicePrimaryCtxRelease(Device device);
Result cuDevicePrimaryCtxReset(Device device);
Result cuCtxGetCurrent(Context* context);
Result cuCtxSetCurrent(Context context);
Result cuCtxPushCurrent(Context context);
Result cuCtxPopCurrent(Context* context);
Result cuCtxGetDevice(Device* device);
Result cuCtxGetId(Context context, unsigned long long* id);
Result cuCtxSynchronize();

Result cuStreamCreate(Stream* stream, unsigned flags);
Result cuStreamCreateWithPriority(Stream* stream, unsigned flags, int priority);
Result cuStreamDestroy(Stream stream);
Result cuStreamWaitEvent(Stream stream, Event event, unsigned flags);
Result cuStreamQuery(Stream stream);
Result cuStreamSynchronize(Stream stream);
Result cuStreamGetCtx(Stream stream, Context* context);
Result cuStreamGetPriority(Stream stream, int* priority);
Result cuStreamGetFlags(Stream stream, unsigned* flags);
Result cuStreamWriteValue32(Stream stream, Pointer to, std::uint32_t value, unsigned flags);

Result cuStreamBeginCapture(Stream stream, int mode);
Result cuStreamEndCapture(Stream stream, Graph* graph);
Result cuStreamIsCapturing(Stream stream, int* status);
Result cuStreamGetCaptureInfo(Stream stream, int* status, u64* id, Graph* graph, const GraphNode** dependencies,
                              std::size_t* count);
Result cuThreadExchangeStreamCaptureMode(int* mode);
Result cuGraphInstantiate(GraphExec* exec, Graph graph, unsigned long long flags);
Result cuGraphLaunch(GraphExec exec, Stream stream);
Result cuGraphDestroy(Graph graph);
Result cuGraphExecDestroy(GraphExec exec);
Result cuUserObjectCreate(UserObject* object, void* data, HostFunction destroy, unsigned references, unsigned flags);
Result cuUserObjectRetain(UserObject object, unsigned count);
Result cuUserObjectRelease(UserObject object, unsigned count);
Result cuGraphRetainUserObject(Graph graph, UserObject object, unsigned count, unsigned flags);

Result cuEventCreate(Event* event, unsigned flags);
Result cuEventDestroy(Event event);
Result cuEventRecord(Event event, Stream stream);
Result cuEventRecordWithFlags(Event event, Stream stream, unsigned flags);
Result cuEventQuery(Event event);
Result cuEventSynchronize(Event event);
Result cuEventElapsedTime(float* milliseconds, Event start, Event end);
Result cuCtxRecordEvent(Context context, Event event);

Result cuMemAlloc(Pointer* pointer, std::size_t nbytes);
Result cuMemFree(Pointer pointer);
Result cuMemAllocAsync(Pointer* pointer, std::size_t nbytes, Stream stream);
Result cuMemFreeAsync(Pointer pointer, Stream stream);
Result cuMemHostRegister(void* pointer, std::size_t nbytes, unsigned flags);
Result cuMemHostUnregister(void* pointer);
Result cuMemHostGetDevicePointer(Pointer* device_pointer, void* pointer, unsigned flags);
Result cuMemHostAlloc(void** pointer, std::size_t nbytes, unsigned flags);
Result cuMemFreeHost(void* pointer);
Result cuPointerGetAttributes(unsigned count, int* attributes, void** data, Pointer pointer);

Result cuMemcpyDtoHAsync(void* to, Pointer from, std::size_t nbytes, Stream stream);
Result cuMemcpyHtoDAsync(Pointer to, const void* from, std::size_t nbytes, Stream stream);
Result cuMemcpyDtoDAsync(Pointer to, Pointer from, std::size_t nbytes, Stream stream);
Result cuMemcpy2DAsync(const Copy2D* copy, Stream stream);
Result cuMemcpyPeerAsync(Pointer to, Context to_context, Pointer from, Context from_context, std::size_t nbytes,
                         Stream stream);
Result cuMemcpyBatchAsync(Pointer* to, Pointer* from, std::size_t* nbytes, std::size_t count,
                          CopyAttributes* attributes, std::size_t* firsts, std::size_t n, std::size_t* failed_at,
                          Stream stream);
Result cuLibraryLoadData(Library* library, const void* image, int* jit_options, void** jit_values, unsigned jit_count,
                         int* options, void** values, unsigned option_count);
Result cuLibraryUnload(Library library);
Result cuLibraryGetKernel(Kernel* kernel, Library library, const char* name);
Result cuKernelGetFunction(Function* function, Kernel kernel);
Result cuFuncGetAttribute(int* value, int attribute, Function function);
Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned shared_nbytes, Stream stream, void** parameters,
                      void** extra);

Result cuMemsetD8Async(Pointer to, unsigned char value, std::size_t nbytes, Stream stream);

}  // namespace fake
