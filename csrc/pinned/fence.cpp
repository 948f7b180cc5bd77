#include "pinned/fence.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include "core/mutation.hpp"
#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"

namespace ferry {
namespace {

using cuda::ContextIdentity;
using cuda::CUresult;
using cuda::CUstream;
using cuda::Functions;

enum class Step : unsigned char { done, later, lost };

Step step_of(CUresult code) noexcept {
  if (code == cuda::success) return Step::done;
  return cuda::is_sticky(code) || code == cuda::result::deinitialized ? Step::lost : Step::later;
}

bool contains(const std::vector<ContextIdentity>& list, const ContextIdentity& context) {
  return std::find(list.begin(), list.end(), context) != list.end();
}

// The streams of one context, which is current.
class Recorder {
 public:
  Recorder(cuda::Runtime& runtime, const ContextIdentity& context, bool is_primary)
      : runtime_(runtime),
        functions_(runtime.functions()),
        scope_(runtime.driver(), runtime.primaries(), cuda::current_device(functions_).value(),
               cuda::Primary::if_active),
        streams_{cuda::legacy_stream()} {
    const auto own = runtime.own_streams(context);
    streams_.insert(streams_.end(), own.begin(), own.end());
    if (!is_primary || mutated(Mutation::fence_without_foreign)) return;
    const auto foreign = runtime.foreign_streams(scope_.device());
    streams_.insert(streams_.end(), foreign.begin(), foreign.end());
  }

  Step record_streams(std::vector<cuda::Event>& events) const {
    for (const CUstream stream : streams_) {
      if (const Step looked = look_at(stream); looked != Step::done) return looked;
      events.push_back(runtime_.events().take(scope_, cuda::EventUse::ordering));
      const Step step = step_of(functions_.cuEventRecord(events.back().handle(), stream));
      if (step != Step::done) return step;
      // A capture may have begun after the look: then the event is part of it, and to ask for it would end the capture.
      if (const Step looked = look_at(stream); looked != Step::done) return looked;
    }
    return Step::done;
  }

  // All work of the context, by one event. It would end every capture in the context, so all streams that we know are
  // looked at.
  Step record_context(std::vector<cuda::Event>& events) const {
    if (const Step looked = look_at(streams_.front()); looked != Step::done) return looked;
    events.push_back(runtime_.events().take(scope_, cuda::EventUse::ordering));
    for (const CUstream stream : streams_) {
      if (const Step looked = look_at(stream); looked != Step::done) return looked;
    }
    return step_of(functions_.cuCtxRecordEvent(scope_.context().handle, events.back().handle()));
  }

 private:
  Step look_at(CUstream stream) const {
    if (mutated(Mutation::ignore_capture)) return Step::done;
    int status = cuda::capture_status_none;
    const Step step = step_of(functions_.cuStreamIsCapturing(stream, &status));
    return step == Step::done && status != cuda::capture_status_none ? Step::later : step;
  }

  cuda::Runtime& runtime_;
  const Functions& functions_;
  cuda::ContextScope scope_;
  std::vector<CUstream> streams_;
};

struct ActivePrimary {
  cuda::CUdevice device;
  ContextIdentity context;
};

std::vector<ActivePrimary> active_primaries(cuda::Runtime& runtime) {
  const Functions& functions = runtime.functions();
  std::vector<ActivePrimary> active;
  int count = 0;
  cuda::check(functions, functions.cuDeviceGetCount(&count), "cuDeviceGetCount");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cuda::CUdevice device = 0;
    cuda::check(functions, functions.cuDeviceGet(&device, ordinal), "cuDeviceGet");
    if (const auto primary = runtime.primaries().find(device, cuda::Primary::if_active)) {
      active.push_back({device, *primary});
    }
  }
  return active;
}

Step record_in(cuda::Runtime& runtime, Fence fence, const ContextIdentity& context, bool is_primary,
               std::vector<cuda::Event>& events) {
  const Functions& functions = runtime.functions();
  const cuda::PushedContext pushed(runtime.driver(), context.handle);
  if (pushed.code() != cuda::success) return step_of(pushed.code());
  const Recorder recorder(runtime, context, is_primary);
  const bool whole_context = fence == Fence::context && functions.cuCtxRecordEvent != nullptr;
  return whole_context ? recorder.record_context(events) : recorder.record_streams(events);
}

FenceAttempt attempt_fence(cuda::Runtime& runtime, Fence fence, std::uint64_t last_return,
                           const std::vector<ContextIdentity>& seen, const std::vector<ContextIdentity>& known_lost) {
  FenceAttempt attempt;
  std::vector<ContextIdentity> contexts;
  for (const auto& [device, primary] : active_primaries(runtime)) {
    const bool covered = runtime.foreign().cover(device, last_return) || mutated(Mutation::fence_before_known);
    if (!covered && !contains(known_lost, primary)) return {};
    contexts.push_back(primary);
  }
  const std::size_t primaries = contexts.size();
  for (const ContextIdentity& other : seen) {
    if (!contains(contexts, other) && cuda::is_alive(runtime.functions(), other)) contexts.push_back(other);
  }
  for (std::size_t i = 0; i < contexts.size(); ++i) {
    if (contains(known_lost, contexts[i])) continue;
    const std::size_t before = attempt.events.size();
    switch (record_in(runtime, fence, contexts[i], i < primaries, attempt.events)) {
      case Step::done:
        break;
      case Step::later:
        return {};
      case Step::lost:
        attempt.lost.push_back(contexts[i]);
        while (attempt.events.size() > before) attempt.events.pop_back();
        break;
    }
  }
  attempt.recorded = true;
  return attempt;
}

}  // namespace

FenceAttempt record_fence(cuda::Runtime& runtime, Fence fence, std::uint64_t last_return,
                          const std::vector<ContextIdentity>& seen,
                          const std::vector<ContextIdentity>& known_lost) noexcept {
  try {
    return attempt_fence(runtime, fence, last_return, seen, known_lost);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace ferry
