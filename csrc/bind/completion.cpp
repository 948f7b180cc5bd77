// The thread that finishes transfers. It sleeps while nothing is pending, and asks with growing pauses while something
// is: the driver has no way to wake it that also works after an error. What graphs hold is looked at now and then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bind/device_path.hpp"
#include "bind/gil.hpp"
#include "core/error.hpp"
#include "cuda/fork_generation.hpp"

namespace ferry::bind {
namespace {

using namespace std::chrono_literals;
constexpr auto shortest_pause = 20us;
constexpr auto longest_pause = 1000us;
constexpr auto pause_for_graphs = 100ms;  // nobody waits for their end, and they may live for long

struct Watched {
  std::shared_ptr<const Pending> pending;
  std::function<void()> then;
};

class Completion {
 public:
  void start() {
    const std::lock_guard lock(mutex_);
    if (thread_.joinable()) return;
    thread_ = std::thread([this, mine = ++current_] { run(mine); });
  }

  void stop() {
    std::thread stopped;
    {
      const std::lock_guard lock(mutex_);
      ++current_;
      stopped.swap(thread_);
    }
    changed_.notify_all();
    if (!stopped.joinable()) return;
    if (stopped.get_id() == std::this_thread::get_id()) {
      stopped.detach();  // a call that it makes asks it to end: it does so afterwards
    } else {
      stopped.join();
    }
  }

  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }

  [[nodiscard]] bool runs() const noexcept {
    const std::lock_guard lock(mutex_);
    return thread_.joinable();
  }

  void watch(Watched watched) {
    {
      const std::lock_guard lock(mutex_);
      watched_.push_back(std::move(watched));
    }
    changed_.notify_all();
  }

  void notify() noexcept {
    {
      const std::lock_guard lock(mutex_);  // the thread is before its question, or asleep: it cannot miss this
    }
    changed_.notify_all();
  }

  // Returns how many things went.
  std::size_t look() noexcept {
    Transfers* known = transfers_if_used();
    if (known == nullptr) return 0;
    const std::size_t before = known->retired().stats().pending;
    known->reap();
    const std::size_t after = known->retired().stats().pending;
    return (before > after ? before - after : 0) + finish_watched();
  }

 private:
  static bool is_finished(const Pending& pending) noexcept {
    try {
      return pending.done();
    } catch (const Error&) {
      return true;  // whoever asks for the result is told
    } catch (...) {
      return true;
    }
  }

  // One thread at a time looks, so that the calls keep their order; another one finds its work done here.
  std::size_t finish_watched() noexcept {
    if (looking_.exchange(true, std::memory_order_acquire)) return 0;
    std::deque<Watched> asked;
    {
      const std::lock_guard lock(mutex_);
      asked.swap(watched_);
    }
    std::vector<Watched> finished;
    std::deque<Watched> left;
    for (Watched& watched : asked) {
      if (is_finished(*watched.pending)) {
        finished.push_back(std::move(watched));
      } else {
        left.push_back(std::move(watched));
      }
    }
    {
      const std::lock_guard lock(mutex_);
      for (Watched& fresh : watched_) left.push_back(std::move(fresh));
      watched_.swap(left);
    }
    for (Watched& watched : finished) watched.then();
    looking_.store(false, std::memory_order_release);
    return finished.size();
  }

  [[nodiscard]] bool has_work() const {
    Transfers* known = transfers_if_used();
    return !watched_.empty() || (known != nullptr && known->retired().stats().pending > 0);
  }

  static bool holds_for_graphs() noexcept {
    Transfers* known = transfers_if_used();
    return known != nullptr && known->graph_holds().graphs() > 0;
  }

  // The driver is not asked: graphs that are gone have told so.
  static void release_for_graphs() noexcept {
    if (Transfers* known = transfers_if_used()) known->graph_holds().reap();
  }

  void run(std::uint64_t mine) noexcept {
    const PythonThread known_to_python;
    auto pause = std::chrono::microseconds(shortest_pause);
    std::unique_lock lock(mutex_);
    while (current_ == mine) {
      const bool busy = has_work();
      if (!busy && !holds_for_graphs()) {
        changed_.wait(lock);
        pause = shortest_pause;
        continue;
      }
      lock.unlock();
      if (busy) {
        pause = look() > 0 ? shortest_pause : std::min<std::chrono::microseconds>(pause * 2, longest_pause);
      } else {
        release_for_graphs();
      }
      lock.lock();
      if (current_ != mine) break;
      if (busy || has_work()) {
        changed_.wait_for(lock, pause);
      } else {
        changed_.wait_for(lock, pause_for_graphs);
        pause = shortest_pause;
      }
    }
  }

  const std::uint32_t generation_ = cuda::fork_generation();
  mutable std::mutex mutex_;
  std::atomic<bool> looking_{false};  // not a mutex: what is called may look itself
  std::condition_variable changed_;
  std::deque<Watched> watched_;
  std::thread thread_;
  std::uint64_t current_ = 0;  // whose turn it is: a thread of an earlier turn ends
};

// A child of a fork gets another: the parent's threads are not there, and its locks may be taken.
Completion& completion() {
  static std::atomic<Completion*> made{nullptr};
  Completion* known = made.load(std::memory_order_acquire);
  if (known != nullptr && known->generation() == cuda::fork_generation()) return *known;
  auto fresh = std::make_unique<Completion>();
  if (made.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) known = fresh.release();
  return *known;
}

}  // namespace

void start_completion_thread() { completion().start(); }
void stop_completion_thread() { completion().stop(); }
bool completion_thread_runs() { return completion().runs(); }
void call_when_done(std::shared_ptr<const Pending> pending, std::function<void()> then) {
  completion().watch({std::move(pending), std::move(then)});
}
void note_pending_work() noexcept { completion().notify(); }
void reap_now() { completion().look(); }

}  // namespace ferry::bind
