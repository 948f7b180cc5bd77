// Pages that others own, registered for as long as somebody wants them pinned.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/registration.hpp"

namespace ferry {

struct PinnedPages;

// Keeps the registrations that cover certain bytes, and with them the owner of the memory.
class PinnedRange {
 public:
  explicit PinnedRange(std::vector<std::shared_ptr<PinnedPages>> pages) noexcept : pages_(std::move(pages)) {}

  // How many bytes from `data` on, up to `nbytes`, lie inside one registration: what one copy may cover.
  [[nodiscard]] std::size_t piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept;

  // What a transfer holds while a device may touch the memory: this, and `owner`.
  [[nodiscard]] std::shared_ptr<void> use(std::shared_ptr<void> owner) const;
  // Does some transfer hold one of these registrations?
  [[nodiscard]] bool in_use() const noexcept;
  [[nodiscard]] bool read_only() const noexcept;

 private:
  std::vector<std::shared_ptr<PinnedPages>> pages_;  // in order of address
};

struct PinRequest {
  std::byte* data;
  std::size_t nbytes;  // not 0
  bool read_only;      // the pages cannot be written to, so that devices may only read them
};

struct PinAttempt {
  std::optional<PinnedRange> range;  // all that was asked for; else nothing of it
  cuda::RegistrationOutcome outcome = cuda::RegistrationOutcome::registered;
};

// Which pages are registered, so that arrays that share some do not collide (the driver answers 712). Any thread.
// Invariant: every page is in one registration of ours at most; one is unregistered when the last range that holds it
// has gone, and its owner is let go afterwards.
class HostPins {
 public:
  HostPins();

  // Registers the pages of these bytes that are not registered yet. `owner` keeps all of them mapped, for as long as
  // any range needs one of the registrations that are made here. Blocks while pages are locked. Throws Error.
  [[nodiscard]] PinAttempt pin(const cuda::ContextScope& scope, const std::vector<PinRequest>& requests,
                               std::shared_ptr<void> owner);

  // The registrations that cover these bytes, if ours do and the context that they were made in was not reset.
  [[nodiscard]] std::optional<PinnedRange> find(const void* data, std::size_t nbytes) const;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace ferry
