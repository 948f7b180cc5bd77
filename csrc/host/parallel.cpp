#include "host/parallel.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ferry {
namespace {

thread_local int limit = 1;

// One call of run_pieces. It lives on the caller's stack: `helpers` counts the workers that may still look at it.
struct Job {
  void (*work)(void*, std::int64_t);
  void* context;
  std::int64_t pieces;
  std::atomic<std::int64_t> next{0};
  int wanted;       // helpers that may still join; guarded by the pool's mutex
  int helpers = 0;  // guarded by the pool's mutex
  std::condition_variable idle{};

  void run() {
    for (;;) {
      const std::int64_t piece = next.fetch_add(1, std::memory_order_relaxed);
      if (piece >= pieces) return;
      work(context, piece);
    }
  }
};

class Pool {
 public:
  void run(int threads, Job& job) {
    int helpers = 0;
    {
      const std::lock_guard lock(mutex_);
      grow(threads - 1);
      helpers = job.wanted = std::min(threads - 1, workers_);
      jobs_.push_back(&job);
    }
    for (int i = 0; i < helpers; ++i) work_.notify_one();
    job.run();
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    job.idle.wait(lock, [&job] { return job.helpers == 0; });
  }

 private:
  // Threads that cannot be had are done without. Signals are for the threads of the program.
  void grow(int wanted) {
    if (workers_ >= wanted) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; workers_ < wanted; ++workers_) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {
      wanted = workers_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      Job* job = nullptr;
      work_.wait(lock, [this, &job] {
        const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* open) { return open->wanted > 0; });
        job = found != jobs_.end() ? *found : nullptr;
        return job != nullptr;
      });
      --job->wanted;
      ++job->helpers;
      lock.unlock();
      job->run();
      lock.lock();
      if (--job->helpers == 0) job->idle.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_;
  std::vector<Job*> jobs_;  // those that helpers may join; each removes itself before its caller returns
  int workers_ = 0;
};

// Never destroyed: workers wait in it until the process ends. A child of fork has no workers and starts anew; what it
// inherits may be locked for ever and is left alone.
std::atomic<Pool*> shared_pool{nullptr};

Pool& pool() {
  Pool* found = shared_pool.load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { shared_pool.store(nullptr); });
  static_cast<void>(registered);
  auto* made = new Pool;
  if (shared_pool.compare_exchange_strong(found, made)) return *made;
  delete made;
  return *found;
}

}  // namespace

void run_pieces(int threads, std::int64_t pieces, void (*work)(void* context, std::int64_t piece), void* context) {
  Job job{.work = work, .context = context, .pieces = pieces, .wanted = 0};
  pool().run(static_cast<int>(std::min<std::int64_t>(threads, pieces)), job);
}

int thread_limit() noexcept { return limit; }

ThreadLimit::ThreadLimit(int threads) noexcept : before_(limit) { limit = std::max(1, threads); }
ThreadLimit::~ThreadLimit() { limit = before_; }

}  // namespace ferry
