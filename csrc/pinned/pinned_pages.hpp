// What is kept of registrations of memory that others own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/fork_generation.hpp"
#include "pinned/host_pins.hpp"

namespace ferry {

using Pages = std::shared_ptr<PinnedPages>;

// Whole pages.
struct PageSpan {
  std::byte* begin;
  std::byte* end;
  bool read_only;
};

struct HostPins::State : std::enable_shared_from_this<HostPins::State> {
  struct Known {
    std::byte* end;
    std::weak_ptr<PinnedPages> pages;
    const PinnedPages* identity;
  };
  using Map = std::map<std::byte*, Known>;

  // In order of address; false where one of them is about to go. With the mutex held.
  [[nodiscard]] bool overlapping(const PageSpan& span, std::vector<Pages>& found) const;
  // The same for all spans, by whoever has the turn. Those that a reset has ended are forgotten.
  [[nodiscard]] bool collect(const std::vector<PageSpan>& spans, std::vector<Pages>& found);
  // Registers what the known ones leave out. By whoever has the turn.
  [[nodiscard]] PinAttempt register_rest(const cuda::ContextScope& scope, const std::vector<PageSpan>& spans,
                                         const std::vector<Pages>& known, const std::shared_ptr<void>& owner,
                                         std::vector<Pages>& held);
  [[nodiscard]] Pages registered(const cuda::ContextScope& scope, const PageSpan& span,
                                 const std::shared_ptr<void>& owner, cuda::RegistrationOutcome& outcome);

  const std::uint32_t generation = cuda::fork_generation();
  std::mutex mutex;
  std::condition_variable changed;
  bool busy = false;  // one thread at a time registers or unregisters; the mutex is not held meanwhile
  Map pages;
};

// One registration.
struct PinnedPages {
  PinnedPages(std::shared_ptr<HostPins::State> shared, const cuda::ContextScope& scope, const PageSpan& span,
              std::shared_ptr<void> owner)
      : state(std::move(shared)),
        driver(scope.driver()),
        context(scope.context()),
        begin(span.begin),
        end(span.end),
        read_only(span.read_only),
        owners{std::move(owner)} {}
  PinnedPages(const PinnedPages&) = delete;
  PinnedPages& operator=(const PinnedPages&) = delete;
  ~PinnedPages();

  [[nodiscard]] bool is_alive() const noexcept {
    const cuda::Functions* functions = driver.functions_if_usable();
    return functions != nullptr && cuda::is_alive(*functions, context);
  }

  const std::shared_ptr<HostPins::State> state;
  const cuda::Driver& driver;
  const cuda::ContextIdentity context;
  std::byte* const begin;
  std::byte* const end;
  const bool read_only;
  std::list<std::shared_ptr<void>> owners;  // of one, as keep_for_good wants it
  std::optional<cuda::Registration> registration;
  const std::shared_ptr<std::atomic<std::size_t>> uses = std::make_shared<std::atomic<std::size_t>>(0);
};

// The right to change what is registered, while it lives.
class Turn {
 public:
  explicit Turn(HostPins::State& state) : state_(state) {
    std::unique_lock lock(state_.mutex);
    state_.changed.wait(lock, [this] { return !state_.busy; });
    state_.busy = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    {
      const std::lock_guard lock(state_.mutex);
      state_.busy = false;
    }
    state_.changed.notify_all();
  }

 private:
  HostPins::State& state_;
};

}  // namespace ferry
