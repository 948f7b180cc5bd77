#include "cuda/fork_generation.hpp"

#include <pthread.h>

#include <atomic>

namespace ferry::cuda {
namespace {

std::atomic<std::uint32_t> generation{1};

// At load time: a fork must not find another thread in the middle of it.
[[maybe_unused]] const int registered =
    ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

std::uint32_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace ferry::cuda
