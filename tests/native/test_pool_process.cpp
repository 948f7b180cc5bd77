// The pool among threads, forks and the limits of the system.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "host/pool/address_sanitizer.hpp"
#include "host/pool/host_pool.hpp"
#include "host/pool/memory_limit.hpp"

namespace ferry {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;

// Leases, fills and checks until told to stop; returns how many bytes did not read as written.
int work(Pool& pool, unsigned char pattern, const std::atomic<bool>& stop) {
  int wrong = 0;
  for (std::size_t nbytes = 8 * KiB; !stop; nbytes = nbytes * 3 % (300 * KiB) + 8 * KiB) {
    const Lease lease = pool.lease(nbytes);
    std::memset(lease.data(), pattern, nbytes);
    std::this_thread::yield();
    for (std::size_t i = 0; i < nbytes; i += 997) wrong += lease.data()[i] != std::byte{pattern};
  }
  return wrong;
}

TEST(PoolProcess, ThreadsShareAPool) {
  Pool pool(1 * MiB);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned char i = 0; i < 4; ++i) threads.emplace_back([&, i] { wrong += work(pool, i, stop); });
  for (int i = 0; i < 200; ++i) {
    pool.trim(static_cast<std::size_t>(i % 3) * 100 * KiB);
    pool.set_limit(static_cast<std::size_t>(i % 5) * 500 * KiB);
    EXPECT_LE(pool.stats().in_use_blocks, 4U);
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool.stats().in_use_nbytes, 0U);
}

TEST(PoolProcess, AChildForkedWhileThreadsLeaseCanLease) {
  Pool& pool = host_pool();
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (unsigned char i = 0; i < 3; ++i) threads.emplace_back([&, i] { EXPECT_EQ(work(pool, i, stop), 0); });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends the child if it waits for a lock that nobody holds
      const Lease lease = pool.lease(100 * KiB);
      std::memset(lease.data(), 7, lease.nbytes());
      pool.trim(0);
      ::_exit(pool.stats().idle_blocks == 0 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(PoolProcess, TheHostPoolMayIdleAtASixteenthOfMemory) {
  EXPECT_EQ(host_pool().stats().limit_nbytes, memory_limit_nbytes() / 16);
  EXPECT_LE(memory_limit_nbytes(), static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

#ifdef FERRY_HAS_ADDRESS_SANITIZER
TEST(PoolDeathTest, ReadingAReturnedBlockIsReported) {
  Pool pool(64 * MiB);
  const std::byte* data = pool.lease(100 * KiB).data();
  EXPECT_DEATH({ [[maybe_unused]] volatile std::byte read = *data; }, "use-after-poison");
}

TEST(PoolDeathTest, WritingBehindWhatWasAskedForIsReported) {
  Pool pool(64 * MiB);
  const Lease lease = pool.lease(100 * KiB - 8);
  EXPECT_DEATH(lease.data()[lease.nbytes()] = std::byte{1}, "use-after-poison");
}
#endif

TEST(MemoryLimit, ReadsNumbersAndNothingElse) {
  EXPECT_EQ(parsed_limit("1048576\n"), 1048576U);
  EXPECT_EQ(parsed_limit("0"), 0U);
  EXPECT_EQ(parsed_limit("max\n"), std::nullopt);
  EXPECT_EQ(parsed_limit("12 MiB"), std::nullopt);
  EXPECT_EQ(parsed_limit(""), std::nullopt);
  EXPECT_EQ(parsed_limit("-1"), std::nullopt);
}

class ControlGroups : public testing::Test {
 protected:
  ControlGroups() : root_(fs::temp_directory_path() / ("ferry_groups_" + std::to_string(::getpid()))) {}
  ~ControlGroups() override { fs::remove_all(root_); }

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(ControlGroups, NoneSetsNoLimit) { EXPECT_EQ(control_group_limit_nbytes(root_), std::nullopt); }

TEST_F(ControlGroups, TheSmallestLimitAboveTheProcessHolds) {
  write("proc/self/cgroup", "0::/jobs/one\n");
  write("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/memory.max", "4096000\n");
  write("sys/fs/cgroup/memory.max", "8192000\n");
  EXPECT_EQ(control_group_limit_nbytes(root_), 4096000U);
}

TEST_F(ControlGroups, InAContainerTheMountIsTheGroup) {
  write("proc/self/cgroup", "0::/docker/not-visible-here\n");
  write("sys/fs/cgroup/memory.max", "123456\n");
  EXPECT_EQ(control_group_limit_nbytes(root_), 123456U);
}

TEST_F(ControlGroups, VersionOneIsReadWhereItControlsMemory) {
  write("proc/self/cgroup", "9:cpu,cpuacct:/a\n5:hugetlb,memory:/b\nnonsense\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1\n");
  write("sys/fs/cgroup/memory/b/memory.limit_in_bytes", "777\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(control_group_limit_nbytes(root_), 777U);
}

}  // namespace
}  // namespace ferry
