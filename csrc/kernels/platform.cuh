// What kernels ask of the machine below them. nvcc gives the device's own; any other compiler takes kernel_shim.hpp
// from its include path, which gives the same names on the host.
//
// Grids and blocks have one dimension.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)

#define FERRY_DEVICE __device__ __forceinline__
// FERRY_KERNEL(threads) name(const Args args) { ... }: blocks have at most so many threads. One of them on each
// multiprocessor is enough to ask for: else the assembler spills registers to make room for more.
#define FERRY_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads, 1)
// FERRY_SHARED(T, name, [rows][columns]);
#define FERRY_SHARED(T, name, extents) __shared__ T name extents
#define FERRY_UNROLL _Pragma("unroll")
#define FERRY_NO_UNROLL _Pragma("unroll 1")

namespace ferry::gpu {

FERRY_DEVICE std::uint32_t thread_index() { return threadIdx.x; }
FERRY_DEVICE std::uint32_t threads_in_block() { return blockDim.x; }
FERRY_DEVICE std::uint32_t block_index() { return blockIdx.x; }
FERRY_DEVICE std::uint32_t blocks_in_grid() { return gridDim.x; }

// All threads of the block meet; what they wrote before is there for all of them afterwards.
FERRY_DEVICE void barrier() { __syncthreads(); }

// What this thread wrote, and what others wrote that it knows of by a barrier or a ticket, is visible to the host and
// to every device before anything that it writes from now on.
FERRY_DEVICE void system_fence() { __threadfence_system(); }

// Behind everything that is ordered before it, for the host as well.
FERRY_DEVICE void store_release_system(std::uint64_t* at, std::uint64_t value) {
  asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
}

// Adds one and gives the number before; device memory.
FERRY_DEVICE std::uint32_t ticket_add(std::uint32_t* counter) { return atomicAdd(counter, 1U); }

}  // namespace ferry::gpu

#else
#include "kernel_shim.hpp"
#ifndef FERRY_UNROLL
#define FERRY_UNROLL
#endif
#ifndef FERRY_NO_UNROLL
#define FERRY_NO_UNROLL
#endif
#endif
