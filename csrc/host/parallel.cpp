#include "host/parallel.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "host/openmp_team.hpp"

namespace ferry {
namespace {

thread_local int limit = 1;

using Clock = std::chrono::steady_clock;

// Waking a thread takes 5 to 10 us, in which a core copies half a MiB. A worker that has just been busy looks out for
// the next job as long as that takes a few times over.
constexpr auto alert_time = std::chrono::microseconds(50);
constexpr auto succession_time = std::chrono::microseconds(500);  // calls within it follow each other
constexpr std::int64_t worth_waking_nbytes = 2 << 20;             // for each thread
constexpr std::int64_t worth_joining_nbytes = 256 << 10;          // for each thread that is awake

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Calls done() until it is true or the time is over.
template <class Done>
bool watch(Done&& done) noexcept {
  const auto end = Clock::now() + alert_time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (done()) return true;
      relax();
    }
  } while (Clock::now() < end);
  return false;
}

// One call of run_pieces. It lives on the caller's stack; a worker looks at it only while it is counted in `helpers`.
//
// Each thread takes neighbouring pieces from a share of its own, in whose memory its core may have worked before, and
// then helps with the others' shares. Threads of a team have the shares that their numbers say, from call to call;
// torch divides its loops among them in the same way.
class Job {
 public:
  Job(int threads, std::int64_t pieces, void (*work)(void*, std::int64_t), void* context) noexcept
      : work_(work), context_(context), share_count_(std::min(threads, most_shares)) {
    for (int i = 0; i < share_count_; ++i) {
      shares_[static_cast<std::size_t>(i)].next.store(pieces * i / share_count_, std::memory_order_relaxed);
      shares_[static_cast<std::size_t>(i)].end = pieces * (i + 1) / share_count_;
    }
  }

  void run() noexcept { run(arrived_.fetch_add(1, std::memory_order_relaxed)); }

  void run(int own) noexcept {
    for (int i = 0; i < share_count_; ++i) {
      Share& share = shares_[static_cast<std::size_t>((own + i) % share_count_)];
      for (;;) {
        const std::int64_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= share.end) break;
        work_(context_, piece);
      }
    }
  }

  std::atomic<int> helpers{0};
  int wanted = 0;  // helpers that may still join; guarded by the pool's mutex

 private:
  static constexpr int most_shares = 64;
  struct alignas(64) Share {
    std::atomic<std::int64_t> next;
    std::int64_t end;
  };

  void (*work_)(void*, std::int64_t);
  void* context_;
  int share_count_;
  std::atomic<int> arrived_{0};
  std::array<Share, static_cast<std::size_t>(most_shares)> shares_;  // only the first share_count_ are set
};

class Pool {
 public:
  void run(int threads, Job& job) {
    int to_wake = 0;
    {
      const std::lock_guard lock(mutex_);
      grow(threads - 1);
      job.wanted = std::min(threads - 1, workers_);
      to_wake = job.wanted - alert_.load(std::memory_order_relaxed);
      jobs_.push_back(&job);
      posted_.fetch_add(1, std::memory_order_release);
    }
    for (; to_wake > 0; --to_wake) work_.notify_one();
    job.run();
    {
      const std::lock_guard lock(mutex_);
      std::erase(jobs_, &job);
    }
    const auto done = [&job] { return job.helpers.load(std::memory_order_acquire) == 0; };
    if (watch(done)) return;
    std::unique_lock lock(mutex_);
    idle_.wait(lock, done);
  }

  [[nodiscard]] bool is_alert() const noexcept { return alert_.load(std::memory_order_relaxed) > 0; }

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
      if (Job* job = open_job()) {
        --job->wanted;
        job->helpers.fetch_add(1, std::memory_order_relaxed);
        lock.unlock();
        job->run();
        lock.lock();
        if (job->helpers.fetch_sub(1, std::memory_order_acq_rel) == 1) idle_.notify_all();  // the job may be gone
        continue;
      }
      const std::uint64_t seen = posted_.load(std::memory_order_relaxed);
      const auto posted = [this, seen] { return posted_.load(std::memory_order_acquire) != seen; };
      alert_.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      watch(posted);
      lock.lock();
      alert_.fetch_sub(1, std::memory_order_relaxed);
      work_.wait(lock, [this, &posted] { return posted() || open_job() != nullptr; });
    }
  }

  [[nodiscard]] Job* open_job() const noexcept {
    const auto found = std::find_if(jobs_.begin(), jobs_.end(), [](const Job* open) { return open->wanted > 0; });
    return found != jobs_.end() ? *found : nullptr;
  }

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::vector<Job*> jobs_;  // those that helpers may join; each removes itself before its caller returns
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<int> alert_{0};  // workers that look out for the next job
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
  threads = static_cast<int>(std::min<std::int64_t>(threads, pieces));
  Job job(threads, pieces, work, context);
  if (run_on_openmp_team(threads, [](void* shared, int number) { static_cast<Job*>(shared)->run(number); }, &job))
    return;
  pool().run(threads, job);
}

int thread_limit() noexcept { return limit; }

int useful_threads(std::int64_t nbytes) noexcept {
  if (limit == 1 || nbytes < 2 * worth_joining_nbytes) return 1;
  // Calls in quick succession are worth waking somebody for once.
  static std::atomic<Clock::rep> last_asked{0};
  const Clock::rep now = Clock::now().time_since_epoch().count();
  const Clock::rep since = now - last_asked.exchange(now, std::memory_order_relaxed);
  const bool awake = has_openmp_team() || pool().is_alert() || since < Clock::duration(succession_time).count();
  const std::int64_t each = awake ? worth_joining_nbytes : worth_waking_nbytes;
  return static_cast<int>(std::clamp<std::int64_t>(nbytes / each, 1, limit));
}

ThreadLimit::ThreadLimit(int threads) noexcept : before_(limit) { limit = std::max(1, threads); }
ThreadLimit::~ThreadLimit() { limit = before_; }

}  // namespace ferry
