// Holds what a device may still touch until it is done with it, so that whoever began the work may forget about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/event.hpp"
#include "cuda/fork_generation.hpp"

namespace ferry {

// Kept alive until an event is done.
struct Retired {
  std::shared_ptr<const cuda::Event> done;
  std::vector<std::shared_ptr<void>> sources;  // let go when done, and also when the device is lost
  std::vector<std::shared_ptr<void>> memory;   // host or staging memory: kept for good when the device is lost
  std::function<void()> then;  // called once, afterwards, without a lock, also when the device is lost; must not throw
};

struct RetireStats {
  std::size_t pending = 0;  // until it has been let go, and its `then` is over
  std::uint64_t retired = 0;
  std::uint64_t abandoned = 0;  // whose event failed: the device, or its context, is gone
};

// Any thread.
class RetireQueue {
 public:
  RetireQueue();
  RetireQueue(const RetireQueue&) = delete;
  RetireQueue& operator=(const RetireQueue&) = delete;
  // What is still pending is abandoned: its memory stays for good.
  ~RetireQueue();

  // Where there is no memory for the note, waits until the entry is done.
  void add(Retired entry);
  // Lets go of everything that is done, and of all that is lost, in the order of `add` for work of one stream. Never
  // waits, throws nothing. Returns how many entries went: none while another thread is at it.
  std::size_t reap() noexcept;
  // Nothing is asked or called any more; everything that is or will be added stays for good, sources too: at the end of
  // the process.
  void abandon() noexcept;
  [[nodiscard]] RetireStats stats() const noexcept;

 private:
  struct Entry;
  using Entries = std::list<Entry>;

  static void ask_all(Entries& entries) noexcept;
  static Entries taken_out(Entries& entries) noexcept;
  static void let_go(Entries& entries) noexcept;
  [[nodiscard]] bool is_in_child() const noexcept { return cuda::fork_generation() != generation_; }

  // Invariant: stats_.pending counts the entries here and those that a reap has taken out, until it has let them go.
  const std::uint32_t generation_ = cuda::fork_generation();
  mutable std::mutex mutex_;
  std::unique_ptr<Entries> entries_;  // in a forked child never destroyed: another thread may have been at it
  bool reaping_ = false;              // one thread at a time, so that `then` is called in order
  bool ended_ = false;
  RetireStats stats_;
};

}  // namespace ferry
