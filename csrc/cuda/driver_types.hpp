// What the driver's functions take and return: the toolkit's own tags and numbers, without its headers.
#pragma once

#include <cstddef>
#include <cstdint>

// Never defined anywhere: a handle is only passed on. The tags are the toolkit's, so that signatures compare as equal.
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUfunc_st;
struct CUkern_st;
struct CUlib_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUuserObject_st;
struct CUarray_st;
struct CUmemcpyAttributes_st;

namespace ferry::cuda {

using CUcontext = CUctx_st*;
using CUstream = CUstream_st*;
using CUevent = CUevent_st*;
using CUfunction = CUfunc_st*;
using CUkernel = CUkern_st*;
using CUlibrary = CUlib_st*;
using CUgraph = CUgraph_st*;
using CUgraphNode = CUgraphNode_st*;
using CUuserObject = CUuserObject_st*;
using CUarray = CUarray_st*;
using CUhostFn = void (*)(void*);
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUresult = int;

struct CUuuid {
  unsigned char bytes[16];
};

// CUDA_MEMCPY2D, in the layout of driver interface 3.2 and newer.
struct Memcpy2D {
  std::size_t src_x_nbytes;
  std::size_t src_y;
  unsigned src_memory_type;
  const void* src_host;
  CUdeviceptr src_device;
  CUarray src_array;
  std::size_t src_pitch;
  std::size_t dst_x_nbytes;
  std::size_t dst_y;
  unsigned dst_memory_type;
  void* dst_host;
  CUdeviceptr dst_device;
  CUarray dst_array;
  std::size_t dst_pitch;
  std::size_t width_nbytes;
  std::size_t height;
};

// CUresult
inline constexpr CUresult success = 0;
namespace result {
inline constexpr CUresult invalid_value = 1;
inline constexpr CUresult out_of_memory = 2;
inline constexpr CUresult not_initialized = 3;
inline constexpr CUresult deinitialized = 4;
inline constexpr CUresult stub_library = 34;
inline constexpr CUresult no_device = 100;
inline constexpr CUresult invalid_context = 201;
inline constexpr CUresult ecc_uncorrectable = 214;
inline constexpr CUresult nvlink_uncorrectable = 220;
inline constexpr CUresult contained = 226;
inline constexpr CUresult not_found = 500;
inline constexpr CUresult not_ready = 600;
inline constexpr CUresult illegal_address = 700;
inline constexpr CUresult launch_timeout = 702;
inline constexpr CUresult context_is_destroyed = 709;
inline constexpr CUresult device_assert = 710;
inline constexpr CUresult host_memory_already_registered = 712;
inline constexpr CUresult hardware_stack_error = 714;
inline constexpr CUresult illegal_instruction = 715;
inline constexpr CUresult misaligned_address = 716;
inline constexpr CUresult invalid_address_space = 717;
inline constexpr CUresult invalid_pc = 718;
inline constexpr CUresult launch_failed = 719;
inline constexpr CUresult tensor_memory_leak = 721;
inline constexpr CUresult not_permitted = 800;
inline constexpr CUresult not_supported = 801;
inline constexpr CUresult system_driver_mismatch = 803;
inline constexpr CUresult compat_not_supported_on_device = 804;
inline constexpr CUresult mps_client_terminated = 810;
inline constexpr CUresult stream_capture_unsupported = 900;
inline constexpr CUresult stream_capture_invalidated = 901;
inline constexpr CUresult stream_capture_implicit = 906;
inline constexpr CUresult captured_event = 907;
inline constexpr CUresult stream_capture_wrong_thread = 908;
}  // namespace result

// Flags and attributes
inline constexpr std::uint64_t legacy_stream_functions = 1;  // CU_GET_PROC_ADDRESS_LEGACY_STREAM
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_blocking_sync = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned memhostregister_portable = 1;
inline constexpr unsigned memhostregister_devicemap = 2;
inline constexpr unsigned memhostregister_read_only = 8;
inline constexpr unsigned memorytype_host = 1;
inline constexpr unsigned memorytype_device = 2;
inline constexpr int capture_mode_relaxed = 2;
inline constexpr int capture_status_none = 0;
inline constexpr int capture_status_active = 1;
inline constexpr int capture_status_invalidated = 2;
inline constexpr int attribute_read_only_host_register = 113;
inline constexpr int pointer_attribute_memory_type = 2;
inline constexpr int pointer_attribute_is_managed = 8;
inline constexpr int pointer_attribute_device_ordinal = 9;
inline constexpr int pointer_attribute_range_start_addr = 11;
inline constexpr int pointer_attribute_range_size = 12;

}  // namespace ferry::cuda
