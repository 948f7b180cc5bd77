// Streams of other libraries, whose work may touch memory of ours.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/context.hpp"

namespace ferry::cuda {

// Any thread; calls no driver but to ask whether a context is alive.
class ForeignStreams {
 public:
  // They must live as long as the device's primary context; a reset ends and forgets them.
  void add(int device, const ContextIdentity& primary, const std::vector<CUstream>& streams);
  [[nodiscard]] std::vector<CUstream> of(int device, const Functions& functions) const;

  // From now on no fence passes over a device in use before its streams were added, or the library that makes them has
  // said that it had not begun. Somebody has to add them, then, as soon as some are wanted.
  void must_be_known() noexcept { must_be_known_.store(true); }
  [[nodiscard]] bool wanted() const noexcept { return wanted_.load(); }

  // Numbers what happens: a larger one for what comes later.
  [[nodiscard]] std::uint64_t tick() noexcept { return ++ticks_; }
  // The library was asked after this tick, and had not begun: none of its work touches what came back before.
  void had_not_begun(std::uint64_t tick) noexcept;

  // Does a fence cover all that may touch memory which came back until `tick`? If not, streams are wanted.
  [[nodiscard]] bool cover(int device, std::uint64_t tick) noexcept;

 private:
  struct Known {
    ContextIdentity primary;
    std::vector<CUstream> streams;
  };

  std::atomic<bool> must_be_known_{false};
  std::atomic<bool> wanted_{false};
  std::atomic<std::uint64_t> ticks_{0};
  std::atomic<std::uint64_t> not_begun_{0};
  mutable std::mutex mutex_;
  std::map<int, Known> known_;
};

}  // namespace ferry::cuda
