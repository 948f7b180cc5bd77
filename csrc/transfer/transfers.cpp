#include "transfer/transfers.hpp"

#include <algorithm>
#include <utility>

#include "cuda/capture.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/host_ring.hpp"
#include "transfer/refusals.hpp"

namespace ferry {

Transfers::Transfers(cuda::Runtime& runtime, const TransferLimits& limits)
    : runtime_(runtime),
      limits_(limits),
      results_(PinnedPool::make(runtime, limits.results_nbytes)),
      uses_kernels_(limits.kernels) {}

Transfers::~Transfers() = default;

void Transfers::set_staging_source(StagingSource source) {
  const std::lock_guard lock(mutex_);
  staging_source_.swap(source);
}

const cuda::Kernels* Transfers::kernels(const cuda::ContextScope& scope, cuda::CUstream stream) {
  return uses_kernels_.load(std::memory_order_relaxed) ? runtime_.kernels(scope, stream) : nullptr;
}

LinkFigures Transfers::link(int device) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = links_.find(device); known != links_.end()) return known->second;
  }
  LinkFigures found = link_of(runtime_.functions(), device);
  if (const FiguresSource source = figures_source_.load()) found = source(device).value_or(found);
  const std::lock_guard lock(mutex_);
  return links_.emplace(device, found).first->second;  // another thread's, where it was first
}

void Transfers::reap() noexcept {
  if (runtime_.driver().functions_if_usable() == nullptr) return;
  retired_.reap();
  graph_holds_.reap();
  results_->poll();
}

cuda::ContextScope Transfers::enter(const DeviceTensor& tensor) {
  const cuda::Functions& functions = runtime_.functions();
  if (tensor.stream == cuda::legacy_stream() || tensor.stream == cuda::per_thread_stream()) {
    return runtime_.enter(tensor.device);
  }
  if (tensor.stream == nullptr) throw no_stream();
  // Events must be of their stream's context, which need not be the current one of the device.
  const cuda::ContextIdentity context = cuda::identity_of(functions, cuda::context_of(functions, tensor.stream));
  return {runtime_.driver(), tensor.device, context};
}

template <class Use>
auto Transfers::with_context(const cuda::ContextScope& scope, Use use) {
  std::vector<PerContext> ended;  // what a reset has ended goes without our lock
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(contexts_.begin(), contexts_.end(),
                                  [&](const PerContext& one) { return one.context.handle == scope.context().handle; });
  if (known != contexts_.end() && known->context == scope.context()) return use(*known);
  PerContext made;
  made.context = scope.context();
  made.to_host = std::make_shared<HostRing>(runtime_.driver(), limits_.ring_nbytes);
  made.to_device = std::make_shared<HostRing>(runtime_.driver(), limits_.ring_nbytes);
  if (known == contexts_.end()) return use(contexts_.emplace_back(std::move(made)));
  ended.push_back(std::exchange(*known, std::move(made)));
  return use(*known);
}

std::shared_ptr<HostRing> Transfers::ring(const cuda::ContextScope& scope, cuda::Direction direction) {
  return with_context(scope, [direction](const PerContext& known) {
    return direction == cuda::Direction::to_host ? known.to_host : known.to_device;
  });
}

std::shared_ptr<DeviceStaging> Transfers::staging(const cuda::ContextScope& scope) {
  return with_context(scope, [](PerContext& known) {
    if (known.staging && known.staging->has_losses()) known.staging.reset();  // who has lost places keeps it
    return known.staging;
  });
}

bool Transfers::has_kernels_and_staging(const DeviceTensor& tensor) {
  if (!uses_kernels_.load(std::memory_order_relaxed)) return false;
  {
    const cuda::ContextScope scope = enter(tensor);
    refuse_stream(runtime_.functions(), tensor);
    if (kernels(scope, tensor.stream) == nullptr) return false;
    if (staging(scope)) return true;
  }
  return make_staging(tensor, false);
}

bool Transfers::make_staging(const DeviceTensor& tensor, bool must) {
  StagingSource source;
  std::optional<DeviceMemory> memory;
  const std::size_t nbytes = limits_.staging_nbytes;
  {
    const cuda::ContextScope scope = enter(tensor);
    if (!must && with_context(scope, [](const PerContext& known) { return known.has_no_staging; })) return false;
    const std::lock_guard lock(mutex_);
    source = staging_source_;
  }
  if (source) memory = source(tensor.device, nbytes);
  const std::shared_ptr<void> owner = memory ? memory->owner : nullptr;  // if it must go, then not before the scope
  const cuda::ContextScope scope = enter(tensor);
  if (!memory || memory->address == 0) memory = staging_from_driver(scope, nbytes);
  if (!memory) {
    with_context(scope, [](PerContext& known) { known.has_no_staging = true; });
    return false;
  }
  // Of a capture's memory nothing may be kept; another time there may be other memory.
  if (cuda::capture_state(runtime_.functions(), memory->stream) != cuda::CaptureState::none) return false;
  auto made = std::make_shared<DeviceStaging>(runtime_, scope, std::move(*memory), nbytes);
  with_context(scope, [&made](PerContext& known) {
    if (!known.staging) known.staging = std::move(made);  // else another thread was first
  });
  return true;
}

}  // namespace ferry
