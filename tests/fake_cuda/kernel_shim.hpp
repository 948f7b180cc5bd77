// What csrc/kernels/platform.cuh asks of the machine, given by the fake device. Included by the files of kernels only,
// which are compiled apart from the rest of the fake: see kernels.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

#define FERRY_DEVICE inline
#define FERRY_DEVICE_CALL [[gnu::noinline]] inline
#define FERRY_KERNEL(threads) extern "C" void
// One place for each declaration and block, the same for all its threads.
#define FERRY_SHARED(T, name, extents) \
  static const char name##_key = 0;    \
  using name##_type = T extents;       \
  name##_type& name = *static_cast<name##_type*>(::fake_kernel_shared(&name##_key, sizeof(name##_type), alignof(T)))
#define FERRY_UNROLL

extern "C" {
struct FakeKernelPlace {
  std::uint32_t thread, threads, block, blocks;
};
extern FakeKernelPlace fake_kernel_place;  // of the thread that runs: one at a time
void* fake_kernel_shared(const void* key, std::size_t nbytes, std::size_t alignment);
void fake_kernel_barrier();
void fake_kernel_fence();
void fake_kernel_store_release(std::uint64_t* at, std::uint64_t value);
std::uint32_t fake_kernel_ticket_add(std::uint32_t* counter);
}

namespace ferry::gpu {

inline std::uint32_t thread_index() { return fake_kernel_place.thread; }
inline std::uint32_t threads_in_block() { return fake_kernel_place.threads; }
inline std::uint32_t block_index() { return fake_kernel_place.block; }
inline std::uint32_t blocks_in_grid() { return fake_kernel_place.blocks; }
inline void barrier() { fake_kernel_barrier(); }
inline void system_fence() { fake_kernel_fence(); }
inline void store_release_system(std::uint64_t* at, std::uint64_t value) { fake_kernel_store_release(at, value); }
inline std::uint32_t ticket_add(std::uint32_t* counter) { return fake_kernel_ticket_add(counter); }

}  // namespace ferry::gpu
