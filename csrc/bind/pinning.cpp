#include "bind/pinning.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "bind/device_path.hpp"
#include "bind/device_source.hpp"
#include "bind/gil.hpp"
#include "bind/host_context.hpp"
#include "bind/pinnable.hpp"
#include "core/error.hpp"
#include "cuda/host_range.hpp"
#include "pinned/page_access.hpp"

namespace ferry::bind {
namespace {

using cuda::RegistrationOutcome;
using Requests = std::vector<PinRequest>;

std::size_t nbytes_of(const Requests& requests) noexcept {
  std::size_t nbytes = 0;
  for (const PinRequest& request : requests) nbytes += request.nbytes;
  return nbytes;
}

const char* why_refused(RegistrationOutcome outcome) noexcept {
  switch (outcome) {
    case RegistrationOutcome::out_of_memory:
      return "the system does not allow to lock so much memory";
    case RegistrationOutcome::already_registered:
      return "some of its pages, not all, are registered with the driver already, by others or for reading only";
    case RegistrationOutcome::not_permitted:
      return "the driver does not permit it here";
    case RegistrationOutcome::not_supported:
      return "the device does not support it for this kind of memory";
    default:
      return "the driver cannot register this kind of memory";
  }
}

Error refused(const Requests& requests, const std::string& why, const char* instead) {
  return {ErrorKind::device, "pinned() of " + std::to_string(nbytes_of(requests)) + " bytes", why, instead};
}

Error refused(const Requests& requests, RegistrationOutcome outcome) {
  const bool too_much = outcome == RegistrationOutcome::out_of_memory;
  return refused(requests, why_refused(outcome),
                 too_much ? "pin less at a time, or raise the limit (ulimit -l)"
                          : "copy it into ferry.empty_like_pinned(...), or use it as it is");
}

int device_to_pin_for(const Requests& requests, std::optional<int> torch_device) {
  const HostContext context = context_for_pinning(torch_device);
  if (context.device) return *context.device;
  const bool may_come = context.obstacle.empty();
  throw refused(requests, may_come ? "no CUDA device is in use in this process" : context.obstacle,
                may_come ? "use a device first, for example torch.cuda.init(), or take memory from ferry.empty_pinned()"
                         : "use the array as it is");
}

// What no pool of ours has lent.
Requests foreign(const Requests& requests) {
  Requests left;
  for (const PinRequest& request : requests) {
    if (own_pinned_place({request.data, request.nbytes}).lease == nullptr) left.push_back(request);
  }
  return left;
}

std::optional<PinnedRange> registered(const Requests& requests, int device, const std::shared_ptr<void>& owner) {
  const cuda::ContextScope scope = transfers().runtime().enter(device);
  PinAttempt attempt = host_pins().pin(scope, requests, owner);
  if (attempt.range) return std::move(attempt.range);
  if (attempt.outcome != RegistrationOutcome::already_registered) throw refused(requests, attempt.outcome);
  Requests left;  // but what others have registered wholly is pinned
  for (const PinRequest& request : requests) {
    const HostBytes bytes{request.data, request.nbytes};
    const bool known = own_pinned_place(bytes).range.has_value();
    if (known || cuda::classify_host_range(scope, bytes.begin, bytes.nbytes) != cuda::HostRange::pinned) {
      left.push_back(request);
    }
  }
  if (left.empty()) return std::nullopt;
  if (left.size() == requests.size()) throw refused(requests, attempt.outcome);
  attempt = host_pins().pin(scope, left, owner);
  if (!attempt.range) throw refused(left, attempt.outcome);
  return std::move(attempt.range);
}

}  // namespace

void Pin::close() noexcept {
  if (!range_) {
    owner_ = PyRef();
    return;
  }
  {
    const GilReleased released(true);
    range_.reset();
  }
  owner_ = PyRef();
}

Pin pin_memory(const std::vector<const Source*>& sources, PyRef owner, std::optional<int> torch_device) {
  Requests requests;
  for (const Source* source : sources) {
    const HostBytes bytes = host_bytes(source->ref);
    const bool read_only = source->ref.read_only && !pages_are_writable(bytes.begin, bytes.nbytes);
    if (bytes.nbytes > 0) requests.push_back({bytes.begin, bytes.nbytes, read_only});
  }
  if (requests.empty()) return {std::nullopt, std::move(owner)};
  int device = 0;
  {
    const GilReleased released(true);
    device = device_to_pin_for(requests, torch_device);
    static_cast<void>(transfers());
  }
  for (const PinRequest& request : requests) pin_waiting({request.data, request.nbytes}, device, true);
  const std::shared_ptr<void> kept = shared_owner(PyRef(owner));
  std::optional<PinnedRange> range;
  {
    const GilReleased released(true);
    const Requests left = foreign(requests);
    if (!left.empty()) range = registered(left, device, kept);
  }
  return {std::move(range), std::move(owner)};
}

bool hold(const HostBytes& bytes, PoolHandle* pool, std::int64_t stream, std::optional<int> device) {
  if (transfers_if_used() == nullptr) {
    const auto problem = cuda::driver_in_use().problem;
    if (problem && problem->kind == cuda::Unusable::forked) throw problem->error();
    return false;
  }
  std::shared_ptr<PinnedLease> lease;
  if (pool == nullptr) {
    lease = own_pinned_place(bytes).lease;
  } else if (const auto lender = pool->pool_if_used()) {
    lease = lender->find(bytes.begin, bytes.nbytes);
  }
  if (lease == nullptr) return false;
  cuda::Runtime& runtime = transfers().runtime();
  const cuda::CUstream handle = cuda::stream_from_dlpack(stream).value();
  if (handle != cuda::legacy_stream() && handle != cuda::per_thread_stream()) {
    const auto context = cuda::identity_of(runtime.functions(), cuda::context_of(runtime.functions(), handle));
    const cuda::ContextScope scope(runtime.driver(), 0, context);
    lease->hold(scope, handle);
    return true;
  }
  const std::optional<int> named = device ? device : context_for_pinning(std::nullopt).device;
  const cuda::ContextScope scope = runtime.enter(named.value_or(0));
  lease->hold(scope, handle);
  return true;
}

}  // namespace ferry::bind
