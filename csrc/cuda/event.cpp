#include "cuda/event.hpp"

#include <cassert>
#include <optional>
#include <utility>

#include "core/mutation.hpp"
#include "cuda/capture.hpp"
#include "cuda/driver_error.hpp"

namespace ferry::cuda {
namespace {

constexpr unsigned flags_of(EventUse use) noexcept {
  return use == EventUse::waiting ? event_disable_timing | event_blocking_sync : event_disable_timing;
}

}  // namespace

Event::Event(Event&& other) noexcept
    : pool_(other.pool_),
      context_(other.context_),
      use_(other.use_),
      handle_(std::exchange(other.handle_, nullptr)),
      seen_done_(other.seen_done_.load()) {}

Event::~Event() {
  if (handle_ != nullptr) pool_->give_back(context_, use_, handle_);
}

void Event::record(CUstream stream) const {
  const Functions& functions = pool_->driver_.functions();
  seen_done_.store(false);
  check(functions, functions.cuEventRecord(handle_, stream), "cuEventRecord");
}

CUresult Event::noted(CUresult answer) const noexcept {
  if (answer == success) seen_done_.store(true);
  return answer;
}

CUresult Event::ask() const {
  const Functions& functions = pool_->driver_.functions();
  std::optional<RelaxedCapture> relaxed;
  if (!mutated(Mutation::query_unrelaxed)) relaxed.emplace(functions);
  return noted(functions.cuEventQuery(handle_));
}

bool Event::is_done() const {
  if (seen_done_.load()) return true;
  const CUresult code = ask();
  if (code == result::not_ready) return false;
  check(pool_->driver_.functions(), code, "cuEventQuery");
  return true;
}

CUresult Event::query() const {
  if (seen_done_.load()) return success;
  unsigned long long id = 0;
  const CUresult state = pool_->driver_.functions().cuCtxGetId(context_.handle, &id);
  if (state != success) return state;
  return id == context_.id ? ask() : result::context_is_destroyed;
}

void Event::wait() const {
  assert(use_ == EventUse::waiting);  // another one would burn a core
  const Functions& functions = pool_->driver_.functions();
  const RelaxedCapture relaxed(functions);
  check(functions, noted(functions.cuEventSynchronize(handle_)), "cuEventSynchronize");
}

EventPool::~EventPool() {
  const Functions* functions = driver_.functions_if_usable();
  if (functions == nullptr) return;
  for (const Shelf& shelf : shelves_) {
    if (shelf.events.empty() || !is_alive(*functions, shelf.context)) continue;
    for (const CUevent event : shelf.events) report_cleanup(functions->cuEventDestroy(event), "cuEventDestroy");
  }
}

Event EventPool::take(const ContextScope& scope, EventUse use) {
  const Functions& functions = driver_.functions();
  {
    const std::lock_guard lock(mutex_);
    std::vector<CUevent>& events = shelf(scope.context(), use).events;
    if (!events.empty()) {
      const CUevent event = events.back();
      events.pop_back();
      return {*this, scope.context(), use, event};
    }
  }
  CUevent event = nullptr;
  const CUresult code = functions.cuEventCreate(&event, flags_of(use));
  if (code != success) {
    // The answer may be that of earlier work, and the event made all the same.
    if (event != nullptr) report_cleanup(functions.cuEventDestroy(event), "cuEventDestroy");
    throw driver_error(functions, code, "cuEventCreate");
  }
  return {*this, scope.context(), use, event};
}

std::size_t EventPool::idle() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Shelf& shelf : shelves_) count += shelf.events.size();
  return count;
}

EventPool::Shelf& EventPool::shelf(const ContextIdentity& context, EventUse use) {
  for (Shelf& known : shelves_) {
    if (known.context.handle != context.handle || known.use != use) continue;
    if (known.context.id != context.id) {
      known.events.clear();  // of a context that a reset has ended: there is nothing left to destroy
      known.context = context;
    }
    return known;
  }
  Shelf& made = shelves_.emplace_back(Shelf{context, use, {}});
  made.events.reserve(most_idle_);  // so that giving back allocates nothing
  return made;
}

bool EventPool::keep(const ContextIdentity& context, EventUse use, CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  for (Shelf& known : shelves_) {
    if (known.context != context || known.use != use || known.events.size() >= most_idle_) continue;
    known.events.push_back(event);
    return true;
  }
  return false;
}

void EventPool::give_back(const ContextIdentity& context, EventUse use, CUevent event) noexcept {
  const Functions* functions = driver_.functions_if_usable();
  if (functions == nullptr || keep(context, use, event) || !is_alive(*functions, context)) return;
  report_cleanup(functions->cuEventDestroy(event), "cuEventDestroy");
}

}  // namespace ferry::cuda
