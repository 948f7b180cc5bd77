#include "pinned/host_pins.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <thread>
#include <utility>

#include "pinned/pinned_pages.hpp"

namespace ferry {
namespace {

constexpr std::chrono::microseconds for_others{50};  // who are about to unregister

// Whole pages, in order; what shares a page becomes one.
std::vector<PageSpan> whole_pages(const std::vector<PinRequest>& requests) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::vector<PageSpan> spans;
  for (const PinRequest& request : requests) {
    const auto address = reinterpret_cast<std::uintptr_t>(request.data);
    const std::uintptr_t before = address % page;
    const std::uintptr_t after = (page - (address + request.nbytes) % page) % page;
    spans.push_back({request.data - before, request.data + request.nbytes + after, request.read_only});
  }
  std::sort(spans.begin(), spans.end(), [](const PageSpan& a, const PageSpan& b) { return a.begin < b.begin; });
  std::vector<PageSpan> merged;
  for (const PageSpan& span : spans) {
    if (merged.empty() || span.begin >= merged.back().end) {
      merged.push_back(span);
      continue;
    }
    merged.back().end = std::max(merged.back().end, span.end);
    merged.back().read_only = merged.back().read_only && span.read_only;
  }
  return merged;
}

}  // namespace

bool HostPins::State::overlapping(const PageSpan& span, std::vector<Pages>& found) const {
  auto at = pages.upper_bound(span.begin);
  if (at != pages.begin() && std::prev(at)->second.end > span.begin) --at;
  for (; at != pages.end() && at->first < span.end; ++at) {
    Pages alive = at->second.pages.lock();
    if (alive == nullptr) return false;
    found.push_back(std::move(alive));
  }
  return true;
}

bool HostPins::State::collect(const std::vector<PageSpan>& spans, std::vector<Pages>& found) {
  {
    const std::lock_guard lock(mutex);
    for (const PageSpan& span : spans) {
      if (!overlapping(span, found)) return false;
    }
  }
  for (const Pages& one : found) {
    if (one->is_alive()) continue;
    const std::lock_guard lock(mutex);
    pages.erase(one->begin);
  }
  return true;
}

// Null where the driver refuses.
Pages HostPins::State::registered(const cuda::ContextScope& scope, const PageSpan& span,
                                  const std::shared_ptr<void>& owner, cuda::RegistrationOutcome& outcome) {
  auto made = std::make_shared<PinnedPages>(shared_from_this(), scope, span, owner);
  Map entry;
  entry.try_emplace(span.begin, Known{span.end, made, made.get()});
  const auto access = span.read_only ? cuda::HostAccess::read_only : cuda::HostAccess::read_write;
  auto attempt = cuda::register_host(scope, span.begin, static_cast<std::size_t>(span.end - span.begin), access);
  outcome = attempt.outcome;
  if (!attempt.registration) return nullptr;
  made->registration.emplace(std::move(*attempt.registration));
  const std::lock_guard lock(mutex);
  pages.merge(entry);
  return made;
}

PinAttempt HostPins::State::register_rest(const cuda::ContextScope& scope, const std::vector<PageSpan>& spans,
                                          const std::vector<Pages>& known, const std::shared_ptr<void>& owner,
                                          std::vector<Pages>& held) {
  PinAttempt attempt;
  const auto add = [&](std::byte* begin, std::byte* end, bool read_only) {
    if (begin >= end) return true;
    held.reserve(held.size() + 1);
    Pages made = registered(scope, {begin, end, read_only}, owner, attempt.outcome);
    if (made == nullptr) return false;
    held.push_back(std::move(made));
    return true;
  };
  for (const PageSpan& span : spans) {
    std::byte* covered = span.begin;
    for (const Pages& one : known) {
      if (one->begin >= span.end) break;
      if (one->end <= covered || !one->is_alive()) continue;
      if (one->read_only && !span.read_only) {
        attempt.outcome = cuda::RegistrationOutcome::already_registered;
        return attempt;
      }
      if (!add(covered, one->begin, span.read_only)) return attempt;
      held.push_back(one);
      covered = one->end;
    }
    if (!add(covered, span.end, span.read_only)) return attempt;
  }
  attempt.range.emplace(held);
  return attempt;
}

HostPins::HostPins() : state_(std::make_shared<State>()) {}

PinAttempt HostPins::pin(const cuda::ContextScope& scope, const std::vector<PinRequest>& requests,
                         std::shared_ptr<void> owner) {
  static_cast<void>(scope.driver().functions());  // throws in a forked child
  const std::vector<PageSpan> spans = whole_pages(requests);
  for (;;) {
    std::vector<Pages> held;  // what is let go is let go after the turn: to unregister takes another one
    std::vector<Pages> known;
    {
      const Turn turn(*state_);
      if (state_->collect(spans, known)) return state_->register_rest(scope, spans, known, owner, held);
    }
    std::this_thread::sleep_for(for_others);
  }
}

std::optional<PinnedRange> HostPins::find(const void* data, std::size_t nbytes) const {
  if (cuda::fork_generation() != state_->generation) return std::nullopt;
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(data));
  std::vector<Pages> found;
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->overlapping({begin, begin + nbytes, true}, found)) return std::nullopt;
  }
  std::byte* covered = begin;
  for (const Pages& one : found) {
    if (one->begin > covered || !one->is_alive()) return std::nullopt;
    covered = one->end;
  }
  if (covered < begin + nbytes || found.empty()) return std::nullopt;
  return PinnedRange(std::move(found));
}

}  // namespace ferry
