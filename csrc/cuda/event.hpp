// Events: a place in a stream's work that can be waited for. They are taken from a pool and go back to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "cuda/context.hpp"

namespace ferry::cuda {

enum class EventUse : unsigned char {
  ordering,  // between streams, and for queries
  waiting,   // by the host, which sleeps meanwhile
};

class EventPool;

// An event on loan. It goes back when the handle dies, recorded or not: to record it again leaves earlier waits as they
// were. Not for two threads at once.
class Event {
 public:
  Event(Event&& other) noexcept;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  Event& operator=(Event&&) = delete;
  ~Event();

  // Stands for all work of `stream` until now. The stream must be of the event's context. Throws Error.
  void record(CUstream stream) const;
  // Is that work done? True for an event that was never recorded. Throws Error: also for failures of that work. Once it
  // was seen to be done the driver is not asked again: it stays done, also when the device is reset or lost later.
  [[nodiscard]] bool is_done() const;
  // The same as the driver's answer: success, not_ready, or a failure. After a reset of the device, which ends the
  // event, context_is_destroyed without asking. Throws Error where nothing can be asked.
  [[nodiscard]] CUresult query() const;
  // Blocks the host until that work is done; hold no lock, and not the GIL. Only for EventUse::waiting. Throws Error.
  void wait() const;

  [[nodiscard]] CUevent handle() const noexcept { return handle_; }
  [[nodiscard]] const ContextIdentity& context() const noexcept { return context_; }

 private:
  friend class EventPool;
  Event(EventPool& pool, const ContextIdentity& context, EventUse use, CUevent handle) noexcept
      : pool_(&pool), context_(context), use_(use), handle_(handle) {}

  [[nodiscard]] CUresult ask() const;
  [[nodiscard]] CUresult noted(CUresult answer) const noexcept;

  EventPool* pool_;
  ContextIdentity context_;
  EventUse use_;
  CUevent handle_;
  mutable std::atomic<bool> seen_done_{false};  // since it was recorded last
};

// Idle events by context and use. Any thread.
// Invariant: an idle event belongs to nobody, and its context has the id of its shelf.
class EventPool {
 public:
  // Keeps up to `most_idle` events for each context and use.
  explicit EventPool(const Driver& driver, std::size_t most_idle = 256) noexcept
      : driver_(driver), most_idle_(most_idle) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  // Every event must be back. The process's own instance is never destroyed.
  ~EventPool();

  // In the scope's context. Throws Error.
  [[nodiscard]] Event take(const ContextScope& scope, EventUse use);
  [[nodiscard]] std::size_t idle() const;

 private:
  friend class Event;
  struct Shelf {
    ContextIdentity context;
    EventUse use;
    std::vector<CUevent> events;
  };

  Shelf& shelf(const ContextIdentity& context, EventUse use);
  bool keep(const ContextIdentity& context, EventUse use, CUevent event) noexcept;
  void give_back(const ContextIdentity& context, EventUse use, CUevent event) noexcept;

  const Driver& driver_;
  const std::size_t most_idle_;
  mutable std::mutex mutex_;
  std::vector<Shelf> shelves_;
};

}  // namespace ferry::cuda
