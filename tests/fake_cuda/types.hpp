// The driver's types and numbers, written out: no CUDA header is needed. Names and values are those of cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUuserObject_st;
struct CUlib_st;
struct CUkern_st;
struct CUfunc_st;

namespace fake {

using Result = int;
using Device = int;
using Pointer = unsigned long long;
using u64 = std::uint64_t;
using Context = CUctx_st*;
using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraph_st*;
using GraphNode = CUgraphNode_st*;
using GraphExec = CUgraphExec_st*;
using UserObject = CUuserObject_st*;
using Library = CUlib_st*;
using Kernel = CUkern_st*;
using Function = CUfunc_st*;
using HostFunction = void (*)(void*);

inline constexpr Result success = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, deinitialized = 4,
                        stub_library = 34, no_device = 100, invalid_device = 101, invalid_image = 200,
                        invalid_context = 201, no_binary = 209, invalid_ptx = 218, unsupported_ptx = 222,
                        invalid_handle = 400, illegal_state = 401, not_found = 500, not_ready = 600,
                        illegal_address = 700, context_is_destroyed = 709, already_registered = 712,
                        not_registered = 713, misaligned_address = 716, launch_failed = 719, not_permitted = 800,
                        not_supported = 801, driver_mismatch = 803, compat_not_supported = 804, unknown_error = 999;
inline constexpr Result capture_unsupported = 900, capture_invalidated = 901, capture_merge = 902,
                        capture_unmatched = 903, capture_unjoined = 904, capture_isolation = 905,
                        capture_implicit = 906, captured_event = 907, capture_wrong_thread = 908;

inline constexpr std::uintptr_t legacy_handle = 1, per_thread_handle = 2;
inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_blocking_sync = 1, event_disable_timing = 2, event_known_flags = 7, event_external = 1;
inline constexpr int capture_global = 0, capture_thread_local = 1, capture_relaxed = 2;
inline constexpr unsigned host_portable = 1, host_device_map = 2, host_write_combined = 4, host_io_memory = 4,
                          host_read_only = 8;
inline constexpr unsigned memory_host = 1, memory_device = 2, memory_array = 3, memory_unified = 4;
inline constexpr u64 search_legacy = 1, search_per_thread = 2;

struct Copy2D {
  std::size_t src_x, src_y;
  unsigned src_type;
  const void* src_host;
  Pointer src_device;
  void* src_array;
  std::size_t src_pitch;
  std::size_t dst_x, dst_y;
  unsigned dst_type;
  void* dst_host;
  Pointer dst_device;
  void* dst_array;
  std::size_t dst_pitch;
  std::size_t width, height;
};
static_assert(sizeof(Copy2D) == 128);

/// CUmemcpyAttributes; the hints are for managed memory.
struct CopyAttributes {
  int source_order;
  int source_hint[2], target_hint[2];
  unsigned flags;
};
static_assert(sizeof(CopyAttributes) == 24);

struct Uuid {
  unsigned char bytes[16];
};

}  // namespace fake
