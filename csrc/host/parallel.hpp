// Worker threads shared by every copy: those of torch's OpenMP runtime once somebody has joined it, else our own.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ferry {

// Calls work(piece) for each piece of [0, pieces), on the calling thread and at most `threads - 1` others; returns when
// all are done. Each thread takes its pieces from a run of neighbours. Workers that are busy for another caller are not
// waited for. `work` must not throw.
void run_pieces(int threads, std::int64_t pieces, void (*work)(void* context, std::int64_t piece), void* context);

template <class Work>
void parallel_for(int threads, std::int64_t pieces, Work&& work) {
  static_assert(std::is_nothrow_invocable_v<Work&, std::int64_t>, "a worker thread has nobody to throw to");
  if (threads <= 1 || pieces <= 1) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) work(piece);
    return;
  }
  using Body = std::remove_reference_t<Work>;
  run_pieces(threads, pieces, [](void* context, std::int64_t piece) { (*static_cast<Body*>(context))(piece); }, &work);
}

// The threads that a copy may use from now on in this thread; 1 until set. The caller's own thread counts.
[[nodiscard]] int thread_limit() noexcept;

// How many of them are worth their while for work on so many bytes: few hundred KiB each for workers that are awake,
// which they stay for some time after a job, more where they have to be woken.
[[nodiscard]] int useful_threads(std::int64_t nbytes) noexcept;

class ThreadLimit {
 public:
  explicit ThreadLimit(int threads) noexcept;
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;
  ~ThreadLimit();

 private:
  int before_;
};

}  // namespace ferry
