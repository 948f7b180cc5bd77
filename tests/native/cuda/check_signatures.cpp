// Compiles only if every function that we declare has the signature of the toolkit's header at the version that we
// request.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

#include "cuda/driver_functions.hpp"

namespace {

// A type as it is passed: an enumeration as an integer of its size, a struct of ours in place of the toolkit's, the
// width of an integer and not its name.
template <class T>
struct Passed {
  using type = T;
};
template <class T>
  requires(std::is_enum_v<T> || std::is_integral_v<T>)
struct Passed<T> {
  using type = std::conditional_t<sizeof(T) == 8, long, std::conditional_t<sizeof(T) == 4, int, std::make_signed_t<T>>>;
};
template <>
struct Passed<CUuuid_st> {
  using type = ferry::cuda::CUuuid;
};
template <>
struct Passed<CUDA_MEMCPY2D_v2> {
  using type = ferry::cuda::Memcpy2D;
};
template <class T>
  requires std::is_pointer_v<T>
struct Passed<T> {
  using pointee = std::remove_pointer_t<T>;
  using passed = typename Passed<std::remove_const_t<pointee>>::type;
  using type = std::conditional_t<std::is_const_v<pointee>, const passed*, passed*>;
};
template <class Result, class... Arguments>
struct Passed<Result(Arguments...)> {
  using type = typename Passed<Result>::type(typename Passed<Arguments>::type...);
};

template <class Ours, class Toolkits>
constexpr bool same_signature = std::is_same_v<typename Passed<Ours>::type, typename Passed<Toolkits>::type>;

#define COMPARE(name, version, parameters)                                                       \
  static_assert(same_signature<decltype(ferry::cuda::Functions::name), PFN_##name##_v##version>, \
                #name " differs from the toolkit's at " #version);
FERRY_CUDA_REQUIRED(COMPARE)
FERRY_CUDA_KERNELS(COMPARE)
FERRY_CUDA_GRAPHS(COMPARE)
FERRY_CUDA_STREAM_MEMORY(COMPARE)
#if CUDA_VERSION >= 12080
FERRY_CUDA_SINGLE(COMPARE)
#endif

// The comparison must see a difference in a number of parameters, in a width and in constness.
static_assert(!same_signature<CUresult (*)(int), CUresult (*)(int, int)>);
static_assert(!same_signature<CUresult (*)(int), CUresult (*)(std::size_t)>);
static_assert(!same_signature<CUresult (*)(const char*), CUresult (*)(char*)>);
static_assert(!same_signature<CUresult (*)(CUstream), CUresult (*)(CUevent)>);

using ferry::cuda::Memcpy2D;
static_assert(sizeof(ferry::cuda::CUuuid) == sizeof(CUuuid));
static_assert(sizeof(Memcpy2D) == sizeof(CUDA_MEMCPY2D_v2));
static_assert(offsetof(Memcpy2D, src_memory_type) == offsetof(CUDA_MEMCPY2D_v2, srcMemoryType));
static_assert(offsetof(Memcpy2D, src_host) == offsetof(CUDA_MEMCPY2D_v2, srcHost));
static_assert(offsetof(Memcpy2D, src_device) == offsetof(CUDA_MEMCPY2D_v2, srcDevice));
static_assert(offsetof(Memcpy2D, src_array) == offsetof(CUDA_MEMCPY2D_v2, srcArray));
static_assert(offsetof(Memcpy2D, src_pitch) == offsetof(CUDA_MEMCPY2D_v2, srcPitch));
static_assert(offsetof(Memcpy2D, dst_x_nbytes) == offsetof(CUDA_MEMCPY2D_v2, dstXInBytes));
static_assert(offsetof(Memcpy2D, dst_y) == offsetof(CUDA_MEMCPY2D_v2, dstY));
static_assert(offsetof(Memcpy2D, dst_memory_type) == offsetof(CUDA_MEMCPY2D_v2, dstMemoryType));
static_assert(offsetof(Memcpy2D, dst_host) == offsetof(CUDA_MEMCPY2D_v2, dstHost));
static_assert(offsetof(Memcpy2D, dst_device) == offsetof(CUDA_MEMCPY2D_v2, dstDevice));
static_assert(offsetof(Memcpy2D, dst_array) == offsetof(CUDA_MEMCPY2D_v2, dstArray));
static_assert(offsetof(Memcpy2D, dst_pitch) == offsetof(CUDA_MEMCPY2D_v2, dstPitch));
static_assert(offsetof(Memcpy2D, width_nbytes) == offsetof(CUDA_MEMCPY2D_v2, WidthInBytes));
static_assert(offsetof(Memcpy2D, height) == offsetof(CUDA_MEMCPY2D_v2, Height));

namespace result = ferry::cuda::result;
static_assert(result::invalid_value == CUDA_ERROR_INVALID_VALUE);
static_assert(result::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(result::not_initialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(result::deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(result::stub_library == CUDA_ERROR_STUB_LIBRARY);
static_assert(result::no_device == CUDA_ERROR_NO_DEVICE);
static_assert(result::invalid_context == CUDA_ERROR_INVALID_CONTEXT);
static_assert(result::ecc_uncorrectable == CUDA_ERROR_ECC_UNCORRECTABLE);
static_assert(result::nvlink_uncorrectable == CUDA_ERROR_NVLINK_UNCORRECTABLE);
#if CUDA_VERSION >= 12080
static_assert(result::contained == CUDA_ERROR_CONTAINED);
static_assert(result::tensor_memory_leak == CUDA_ERROR_TENSOR_MEMORY_LEAK);
#endif
static_assert(result::not_found == CUDA_ERROR_NOT_FOUND);
static_assert(result::not_ready == CUDA_ERROR_NOT_READY);
static_assert(result::illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(result::launch_timeout == CUDA_ERROR_LAUNCH_TIMEOUT);
static_assert(result::context_is_destroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(result::device_assert == CUDA_ERROR_ASSERT);
static_assert(result::host_memory_already_registered == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
static_assert(result::hardware_stack_error == CUDA_ERROR_HARDWARE_STACK_ERROR);
static_assert(result::illegal_instruction == CUDA_ERROR_ILLEGAL_INSTRUCTION);
static_assert(result::misaligned_address == CUDA_ERROR_MISALIGNED_ADDRESS);
static_assert(result::invalid_address_space == CUDA_ERROR_INVALID_ADDRESS_SPACE);
static_assert(result::invalid_pc == CUDA_ERROR_INVALID_PC);
static_assert(result::launch_failed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(result::not_permitted == CUDA_ERROR_NOT_PERMITTED);
static_assert(result::not_supported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(result::system_driver_mismatch == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
static_assert(result::compat_not_supported_on_device == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
static_assert(result::mps_client_terminated == CUDA_ERROR_MPS_CLIENT_TERMINATED);
static_assert(result::stream_capture_unsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(result::stream_capture_invalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(result::stream_capture_implicit == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
static_assert(result::captured_event == CUDA_ERROR_CAPTURED_EVENT);
static_assert(result::stream_capture_wrong_thread == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);

static_assert(ferry::cuda::legacy_stream_functions == CU_GET_PROC_ADDRESS_LEGACY_STREAM);
static_assert(ferry::cuda::stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(ferry::cuda::event_blocking_sync == CU_EVENT_BLOCKING_SYNC);
static_assert(ferry::cuda::event_disable_timing == CU_EVENT_DISABLE_TIMING);
static_assert(ferry::cuda::memhostregister_portable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(ferry::cuda::memhostregister_devicemap == CU_MEMHOSTREGISTER_DEVICEMAP);
static_assert(ferry::cuda::memhostregister_read_only == CU_MEMHOSTREGISTER_READ_ONLY);
static_assert(ferry::cuda::memorytype_host == CU_MEMORYTYPE_HOST);
static_assert(ferry::cuda::memorytype_device == CU_MEMORYTYPE_DEVICE);
static_assert(ferry::cuda::capture_mode_relaxed == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(ferry::cuda::capture_status_none == CU_STREAM_CAPTURE_STATUS_NONE);
static_assert(ferry::cuda::capture_status_active == CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(ferry::cuda::capture_status_invalidated == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
static_assert(ferry::cuda::pointer_attribute_memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(ferry::cuda::pointer_attribute_is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED);
static_assert(ferry::cuda::pointer_attribute_range_start_addr == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
static_assert(ferry::cuda::pointer_attribute_range_size == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(ferry::cuda::attribute_read_only_host_register == CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED);

}  // namespace
