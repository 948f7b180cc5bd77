#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "host/parallel.hpp"

namespace ferry {
namespace {

// How often each piece was done.
std::vector<int> counts_of(int threads, std::int64_t pieces) {
  std::vector<std::atomic<int>> done(static_cast<std::size_t>(pieces));
  parallel_for(threads, pieces, [&](std::int64_t piece) noexcept { ++done[static_cast<std::size_t>(piece)]; });
  return {done.begin(), done.end()};
}

std::vector<int> ones(std::int64_t pieces) { return std::vector<int>(static_cast<std::size_t>(pieces), 1); }

TEST(ParallelFor, DoesEveryPieceOnce) {
  for (const int threads : {0, 1, 2, 3, 8}) {
    for (const std::int64_t pieces : {0, 1, 2, 3, 7, 64, 5000}) EXPECT_EQ(counts_of(threads, pieces), ones(pieces));
  }
}

TEST(ParallelFor, HasDoneAllPiecesWhenItReturns) {
  for (int round = 0; round < 200; ++round) {
    std::vector<int> results(64);  // not atomic: the caller reads what the workers wrote
    parallel_for(4, 64, [&](std::int64_t piece) noexcept { results[static_cast<std::size_t>(piece)] = round; });
    EXPECT_EQ(results, std::vector<int>(64, round));
  }
}

TEST(ParallelFor, UsesNoMoreThreadsThanAsked) {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  parallel_for(2, 200, [&](std::int64_t) noexcept {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  });
  EXPECT_LE(seen.size(), 2U);
  EXPECT_GE(seen.size(), 1U);
}

TEST(ParallelFor, SharesPiecesAmongThreads) {
  // Both pieces wait for one another: one thread alone would never end.
  std::atomic<int> arrived{0};
  std::atomic<bool> met{true};
  parallel_for(2, 2, [&](std::int64_t) noexcept {
    ++arrived;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (arrived < 2) {
      if (std::chrono::steady_clock::now() > deadline) {
        met = false;
        return;
      }
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(met);
}

TEST(ParallelFor, ServesCallersFromSeveralThreadsAndFromWithinAPiece) {
  std::vector<std::thread> callers;
  std::atomic<int> failures{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&failures] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<int> inner{0};
        parallel_for(3, 8, [&](std::int64_t) noexcept { parallel_for(3, 5, [&](std::int64_t) noexcept { ++inner; }); });
        if (inner != 40) ++failures;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failures, 0);
}

TEST(ThreadLimit, IsOneUntilSetAndRestoredAfterwards) {
  EXPECT_EQ(thread_limit(), 1);
  {
    const ThreadLimit outer(4);
    EXPECT_EQ(thread_limit(), 4);
    {
      const ThreadLimit inner(0);
      EXPECT_EQ(thread_limit(), 1);
    }
    EXPECT_EQ(thread_limit(), 4);
  }
  EXPECT_EQ(thread_limit(), 1);
}

TEST(ThreadLimit, BelongsToItsThread) {
  const ThreadLimit here(5);
  int there = 0;
  std::thread([&there] { there = thread_limit(); }).join();
  EXPECT_EQ(there, 1);
}

#if !defined(__SANITIZE_THREAD__)  // which does not support threads in a child of fork
TEST(ParallelFor, WorksInAChildOfForkAndStillInTheParent) {
  ASSERT_EQ(counts_of(3, 100), ones(100));  // so that there are workers, which the child does not inherit
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(counts_of(3, 1000) == ones(1000) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(counts_of(3, 1000), ones(1000));
}
#endif

}  // namespace
}  // namespace ferry
