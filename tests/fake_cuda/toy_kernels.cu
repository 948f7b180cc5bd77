// Small kernels for the tests of the fake device itself. Most of them make one mistake, which must be noticed.
#include "kernels/platform.cuh"

struct ToyArgs {
  std::uint64_t to, from;
  std::uint64_t count;   // of 4-byte numbers
  std::uint64_t flag;    // 8 bytes
  std::uint64_t ticket;  // 4 bytes of device memory
  std::uint64_t value;
};

#define TOY_KERNELS(X)       \
  X(fill, false)             \
  X(copy, false)             \
  X(overrun, false)          \
  X(misaligned, false)       \
  X(through_table, false)    \
  X(reverse, true)           \
  X(unlisted_barrier, false) \
  X(divergent, true)         \
  X(unset_shared, true)      \
  X(beyond_shared, true)     \
  X(signal, true)            \
  X(signal_unfenced, true)   \
  X(signal_early, true)      \
  X(wide, false)

namespace {

using namespace ferry::gpu;

template <class T>
inline T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

inline std::uint64_t first_item() { return std::uint64_t{block_index()} * threads_in_block() + thread_index(); }
inline std::uint64_t all_threads() { return std::uint64_t{blocks_in_grid()} * threads_in_block(); }

inline void fill(const ToyArgs& args) {
  for (std::uint64_t i = first_item(); i < args.count; i += all_threads()) {
    at<std::uint32_t>(args.to)[i] = static_cast<std::uint32_t>(args.value + i);
  }
}

struct alignas(16) Sixteen {
  std::uint32_t words[4];
};

}  // namespace

FERRY_KERNEL(1024) toy_fill(const ToyArgs args) { fill(args); }

FERRY_KERNEL(1024) toy_copy(const ToyArgs args) {
  for (std::uint64_t i = first_item(); i < args.count; i += all_threads()) {
    at<std::uint32_t>(args.to)[i] = at<const std::uint32_t>(args.from)[i];
  }
}

FERRY_KERNEL(1024) toy_overrun(const ToyArgs args) { at<std::uint8_t>(args.to)[args.count] = 1; }

FERRY_KERNEL(1024) toy_misaligned(const ToyArgs args) { *at<std::uint32_t>(args.to + 2) = 1; }

FERRY_KERNEL(1024) toy_through_table(const ToyArgs args) { *at<std::uint32_t>(*at<std::uint64_t>(args.from)) = 1; }

FERRY_KERNEL(1024) toy_wide(const ToyArgs args) {
  for (std::uint64_t i = first_item(); i < args.count; i += all_threads()) {
    at<Sixteen>(args.to)[i] = at<const Sixteen>(args.from)[i];
  }
}

// The numbers of each block in the opposite order.
FERRY_KERNEL(1024) toy_reverse(const ToyArgs args) {
  FERRY_SHARED(std::uint32_t, tile, [2][512]);
  for (std::uint64_t start = 0; start < args.count; start += threads_in_block()) {
    tile[0][thread_index()] = at<const std::uint32_t>(args.from)[start + thread_index()];
    barrier();
    at<std::uint32_t>(args.to)[start + thread_index()] = tile[0][threads_in_block() - 1 - thread_index()];
    barrier();
  }
}

FERRY_KERNEL(1024) toy_unlisted_barrier(const ToyArgs) { barrier(); }

FERRY_KERNEL(1024) toy_divergent(const ToyArgs args) {
  if (thread_index() < args.count) barrier();
}

FERRY_KERNEL(1024) toy_unset_shared(const ToyArgs args) {
  FERRY_SHARED(std::uint32_t, tile, [16]);
  at<std::uint32_t>(args.to)[0] = tile[args.count];
}

FERRY_KERNEL(1024) toy_beyond_shared(const ToyArgs args) {
  FERRY_SHARED(std::uint32_t, tile, [16]);
  tile[args.count] = 1;
}

// Data, and a flag that the host may trust.
FERRY_KERNEL(1024) toy_signal(const ToyArgs args) {
  fill(args);
  barrier();
  if (thread_index() != 0) return;
  system_fence();
  if (ticket_add(at<std::uint32_t>(args.ticket)) + 1 < blocks_in_grid()) return;
  system_fence();
  store_release_system(at<std::uint64_t>(args.flag), args.value);
}

FERRY_KERNEL(1024) toy_signal_unfenced(const ToyArgs args) {
  fill(args);
  barrier();
  if (thread_index() != 0) return;
  if (ticket_add(at<std::uint32_t>(args.ticket)) + 1 < blocks_in_grid()) return;
  *at<std::uint64_t>(args.flag) = args.value;
}

// No block waits for the others.
FERRY_KERNEL(1024) toy_signal_early(const ToyArgs args) {
  fill(args);
  barrier();
  if (thread_index() == 0) store_release_system(at<std::uint64_t>(args.flag), args.value);
}
