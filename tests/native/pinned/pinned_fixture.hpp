// A runtime on the fake driver, and what others do in the same process.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "core/mutation.hpp"
#include "cuda/runtime.hpp"
#include "fake.hpp"
#include "pinned/pinned_pool.hpp"
#include "pinned/retire_queue.hpp"

namespace ferry::test {

using cuda::CUdeviceptr;
using cuda::CUstream;
using cuda::test::as_somebody_else;
using cuda::test::driver_function;
using cuda::test::fake;

// A mutation for as long as it lives.
class Mutated {
 public:
  explicit Mutated(Mutation mutation) { switch_mutation(mutation); }
  Mutated(const Mutated&) = delete;
  Mutated& operator=(const Mutated&) = delete;
  ~Mutated() { switch_mutation(Mutation::none); }
};

// A stream that somebody else made: not ordered with the legacy stream, as torch's are.
inline CUstream made_stream() {
  CUstream stream = nullptr;
  as_somebody_else([&] { driver_function<int(CUstream*, unsigned)>("cuStreamCreate", 2000)(&stream, 1); });
  return stream;
}

inline CUdeviceptr device_memory(std::size_t nbytes, int device = 0) {
  return fake<CUdeviceptr(std::size_t, int)>("fake_alloc")(nbytes, device);
}

// Device memory that holds one value.
inline CUdeviceptr device_memory_of(unsigned char value, std::size_t nbytes) {
  const CUdeviceptr memory = device_memory(nbytes);
  const std::vector<unsigned char> bytes(nbytes, value);
  fake<int(CUdeviceptr, const void*, std::size_t)>("fake_poke")(memory, bytes.data(), nbytes);
  return memory;
}

// Somebody else's copy into memory of ours.
inline int copies_to_host(std::byte* to, CUdeviceptr from, std::size_t nbytes, CUstream stream) {
  int code = 0;
  as_somebody_else([&] {
    using Copy = int(void*, CUdeviceptr, std::size_t, CUstream);
    code = driver_function<Copy>("cuMemcpyDtoHAsync", 3020)(to, from, nbytes, stream);
  });
  return code;
}

inline void schedule(const char* kind, std::uint64_t seed = 0) {
  EXPECT_EQ(fake<int(const char*, std::uint64_t)>("fake_schedule")(kind, seed), 1);
}
inline void drain() { fake<void()>("fake_drain")(); }

inline void fill(const PinnedLease& lease, unsigned char value) { std::memset(lease.data(), value, lease.nbytes()); }
inline bool holds(const PinnedLease& lease, unsigned char value) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(lease.data());
  return std::all_of(bytes, bytes + lease.nbytes(), [value](unsigned char byte) { return byte == value; });
}

class OnRuntime : public cuda::test::OnFakeDevice {
 protected:
  void SetUp() override { begin({}); }
  void begin(std::initializer_list<const char*> presets) {
    OnFakeDevice::begin(presets);
    runtime_ = std::make_unique<cuda::Runtime>(*driver_);
  }
  void TearDown() override {
    drain();
    for (const CUstream stream : streams_) {
      as_somebody_else([&] { driver_function<int(CUstream)>("cuStreamDestroy", 4000)(stream); });
    }
    streams_.clear();
    runtime_.reset();
    OnFakeDevice::TearDown();
  }

  // A stream of torch's, known to the runtime; and one of somebody nobody has told us of.
  CUstream torch_stream() {
    const CUstream stream = unknown_stream();
    runtime_->add_foreign_streams(0, {stream});
    return stream;
  }
  CUstream unknown_stream() { return streams_.emplace_back(made_stream()); }

  std::shared_ptr<PinnedPool> pool(std::size_t limit_nbytes = std::size_t{256} << 20, Fence fence = Fence::streams) {
    return PinnedPool::make(*runtime_, limit_nbytes, fence);
  }
  std::shared_ptr<PinnedLease> lease(PinnedPool& pool, std::size_t nbytes) {
    std::shared_ptr<PinnedLease> made = pool.lease(scope(), nbytes);
    EXPECT_NE(made, nullptr) << nbytes;
    return made;
  }
  static std::shared_ptr<PinnedLease> exposed(std::shared_ptr<PinnedLease> lease) {
    lease->expose();
    return lease;
  }
  // Until what is done on the device is known to be done: queries put off.
  static void poll_often(PinnedPool& pool) {
    for (int i = 0; i < 2000 && pool.stats().retired_nbytes > 0; ++i) pool.poll();
  }

  std::unique_ptr<cuda::Runtime> runtime_;
  std::vector<CUstream> streams_;
};

// The pool has no other way of closing an epoch than to be asked for more than is idle.
inline void close_epoch(PinnedPool& pool, const cuda::ContextScope& scope) {
  for (std::size_t nbytes = std::size_t{3} << 20; nbytes > 0;) {
    const std::uint64_t before = pool.stats().misses + pool.stats().refusals;
    const auto more = pool.lease(scope, nbytes);
    if (pool.stats().misses + pool.stats().refusals > before) return;
    nbytes += std::size_t{1} << 20;
  }
}

}  // namespace ferry::test
