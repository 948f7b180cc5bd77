#include "cuda/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace ferry::cuda {
namespace {

std::atomic<Runtime*> made{nullptr};  // never freed, since threads may use it while the process ends

// Which of the streams serves a producer that came when there were no more to give.
std::size_t shared_index(CUstream producer, std::size_t count) noexcept {
  const std::size_t number = belongs_to_calling_thread(producer)
                                 ? std::hash<std::thread::id>{}(std::this_thread::get_id())
                                 : std::hash<CUstream>{}(producer);
  return (number ^ (number >> 6) ^ (number >> 12)) % count;  // handles are aligned addresses
}

}  // namespace

Runtime::Runtime(const Driver& driver) : driver_(driver), primaries_(driver), events_(driver), kernels_(driver) {}

Runtime::~Runtime() = default;

std::optional<CUstream> Runtime::known_stream(const ContextIdentity& context, Direction direction, CUstream producer) {
  const bool shared_by_threads = belongs_to_calling_thread(producer);
  for (const CopyStreams& known : copy_streams_) {
    if (known.context != context || known.direction != direction) continue;
    for (const Served& served : known.streams) {
      const bool same_thread = !shared_by_threads || served.thread == std::this_thread::get_id();
      if (served.producer == producer && same_thread) return served.stream.handle();
    }
    const std::size_t count = known.streams.size();
    if (count >= copy_streams_per_direction) return known.streams[shared_index(producer, count)].stream.handle();
  }
  return std::nullopt;
}

CUstream Runtime::copy_stream(const ContextScope& scope, Direction direction, CUstream producer) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_stream(scope.context(), direction, producer)) return *known;
  }
  Served fresh{producer, std::this_thread::get_id(), OwnedStream(scope)};
  const std::lock_guard lock(mutex_);
  if (const auto known = known_stream(scope.context(), direction, producer)) return *known;
  // A reset has ended the context that had this handle before, and its streams.
  std::erase_if(copy_streams_, [&](const CopyStreams& known) {
    return known.context.handle == scope.context().handle && known.context.id != scope.context().id;
  });
  auto at = std::find_if(copy_streams_.begin(), copy_streams_.end(), [&](const CopyStreams& known) {
    return known.context == scope.context() && known.direction == direction;
  });
  if (at == copy_streams_.end()) at = copy_streams_.insert(at, CopyStreams{scope.context(), direction, {}});
  at->streams.reserve(copy_streams_per_direction);
  at->streams.push_back(std::move(fresh));
  return at->streams.back().stream.handle();
}

std::vector<CUstream> Runtime::own_streams(const ContextIdentity& context) const {
  const std::lock_guard lock(mutex_);
  std::vector<CUstream> own;
  for (const CopyStreams& known : copy_streams_) {
    if (known.context != context) continue;
    for (const Served& served : known.streams) own.push_back(served.stream.handle());
  }
  return own;
}

bool Runtime::add_foreign_streams(int device, const std::vector<CUstream>& streams) {
  const std::optional<ContextIdentity> primary = primaries_.find(device, Primary::if_active);
  if (primary) foreign_.add(device, *primary, streams);
  return primary.has_value();
}

Runtime& runtime() {
  const Driver& usable = driver();  // throws in a forked child, too
  Runtime* known = made.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto fresh = std::make_unique<Runtime>(usable);
  if (made.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) known = fresh.release();
  return *known;
}

Runtime* runtime_if_used() noexcept {
  Runtime* const known = made.load(std::memory_order_acquire);
  return known != nullptr && known->driver().functions_if_usable() != nullptr ? known : nullptr;
}

}  // namespace ferry::cuda
