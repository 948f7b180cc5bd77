#include "bind/device_path.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "bind/link.hpp"
#include "cuda/fork_generation.hpp"
#include "host/pool/memory_limit.hpp"

namespace ferry::bind {
namespace {

constexpr std::uint64_t results_share_of_memory = 8;
constexpr std::uint64_t most_results_nbytes = std::uint64_t{4} << 30;

// Leaked on purpose, together with what hangs on it: arrays may die later than any static.
struct Instance {
  std::mutex mutex;
  TransferLimits limits;
  std::atomic<Transfers*> transfers{nullptr};
  std::uint32_t generation = 0;
};

Instance& instance() {
  static Instance& only = *[] {
    auto* made = new Instance;
    made->limits.results_nbytes =
        static_cast<std::size_t>(std::min(memory_limit_nbytes() / results_share_of_memory, most_results_nbytes));
    // So that the child finds the lock free, whatever other threads were doing.
    ::pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                     [] { instance().mutex.unlock(); });
    return made;
  }();
  return only;
}

}  // namespace

Transfers& transfers() {
  if (Transfers* known = transfers_if_used()) return *known;
  cuda::Runtime& runtime = cuda::runtime();  // throws in a child of a process that has used the driver
  Instance& shared = instance();
  const std::lock_guard lock(shared.mutex);
  if (shared.transfers.load() == nullptr) {
    shared.generation = cuda::fork_generation();
    runtime.foreign().must_be_known();
    auto* made = new Transfers(runtime, shared.limits);
    made->set_figures_source(&stored_figures);
    shared.transfers.store(made, std::memory_order_release);
  }
  return *shared.transfers.load();
}

Transfers* transfers_if_used() noexcept {
  const Instance& shared = instance();
  Transfers* known = shared.transfers.load(std::memory_order_acquire);
  return known != nullptr && shared.generation == cuda::fork_generation() ? known : nullptr;
}

void set_transfer_limits(std::optional<std::size_t> results_nbytes, std::optional<std::size_t> ring_nbytes,
                         std::optional<std::size_t> staging_nbytes, std::optional<bool> kernels) {
  Instance& shared = instance();
  const std::lock_guard lock(shared.mutex);
  shared.limits.results_nbytes = results_nbytes.value_or(shared.limits.results_nbytes);
  shared.limits.ring_nbytes = ring_nbytes.value_or(shared.limits.ring_nbytes);
  shared.limits.staging_nbytes = staging_nbytes.value_or(shared.limits.staging_nbytes);
  shared.limits.kernels = kernels.value_or(shared.limits.kernels);
  if (Transfers* known = transfers_if_used()) {
    known->results().set_limit(shared.limits.results_nbytes);
    known->use_kernels(shared.limits.kernels);
  }
}

TransferLimits transfer_limits() {
  Instance& shared = instance();
  const std::lock_guard lock(shared.mutex);
  return shared.limits;
}

}  // namespace ferry::bind
