// Threads, forks, and the machine around a pool.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "child.hpp"
#include "host/parallel.hpp"
#include "pinned/first_touch.hpp"
#include "pinned/memory_headroom.hpp"
#include "pinned/numa_node.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using cuda::test::live;
using test::OnRuntime;

constexpr std::size_t MiB = std::size_t{1} << 20;

class PinnedProcesses : public OnRuntime {};

TEST_F(PinnedProcesses, LeaveMemoryReadableInAForkedChildWhereThePoolIsDead) {
  auto made = pool();
  auto large = exposed(lease(*made, MiB));
  auto small = lease(*made, 100);
  test::fill(*large, 42);
  test::fill(*small, 43);
  const auto* const data = large->data();
  EXPECT_EQ(cuda::test::in_child([&] {
              cuda::test::forget_calls();
              std::string said = test::holds(*large, 42) && test::holds(*small, 43) ? "readable" : "gone";
              made->poll();
              said += made->trim(0) == 0 && made->find(data, 1) == nullptr ? ", dead" : ", alive";
              large.reset();
              small.reset();
              made.reset();
              said += data[MiB - 1] == std::byte{42} ? ", kept" : ", freed";
              return said + ", " + std::to_string(cuda::test::calls().size()) + " calls";
            }),
            "readable, dead, kept, 0 calls");
  EXPECT_EQ(made->stats().in_use_leases, 2U);
  EXPECT_EQ(live("host_registrations"), 2);
  large.reset();
  test::close_epoch(*made, scope());
  poll_often(*made);
}

TEST_F(PinnedProcesses, LendToManyThreadsAtOnce) {
  test::schedule("threaded");
  const auto made = pool(64 * MiB);
  RetireQueue queue;
  std::vector<std::thread> threads;
  std::atomic<int> overwritten{0};
  std::vector<cuda::CUstream> streams;
  for (int i = 0; i < 8; ++i) streams.push_back(torch_stream());
  const cuda::CUdeviceptr source = test::device_memory_of(0xEE, MiB);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      cuda::test::use_device(0);
      const cuda::CUstream stream = streams[static_cast<std::size_t>(i)];
      for (int j = 0; j < 40; ++j) {
        const std::size_t nbytes = std::size_t{100} << ((i + j) % 4 * 4);
        const auto one = made->lease(scope(), nbytes);
        if (one == nullptr) continue;
        const auto value = static_cast<unsigned char>(i * 16 + j % 16);
        test::fill(*one, value);
        if (made->find(one->data(), nbytes) != one) ++overwritten;
        std::this_thread::yield();
        if (!test::holds(*one, value)) ++overwritten;
        switch (j % 4) {
          case 0:
            one->expose();
            test::copies_to_host(one->data(), source, nbytes, stream);
            break;
          case 1:
            test::copies_to_host(one->data(), source, nbytes, stream);
            one->hold(scope(), stream);
            break;
          case 2: {
            auto done = std::make_shared<cuda::Event>(runtime_->events().take(scope(), cuda::EventUse::ordering));
            test::copies_to_host(one->data(), source, nbytes, stream);
            done->record(stream);
            queue.add({std::move(done), {}, {one}, {}});
            break;
          }
          default:
            break;
        }
        if (j % 5 == 0) made->poll();
        if (j % 7 == 0) queue.reap();
        if (j % 20 == 0) made->trim(8 * MiB);
        static_cast<void>(made->stats());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(overwritten.load(), 0);
  for (int i = 0; i < 50000 && queue.stats().pending > 0; ++i) {
    queue.reap();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  for (int i = 0; i < 50000 && made->stats().retired_nbytes > 0; ++i) {
    test::close_epoch(*made, scope());
    made->poll();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const PinnedStats stats = made->stats();
  EXPECT_EQ(stats.in_use_nbytes + stats.in_use_leases + stats.retired_nbytes, 0U);
  EXPECT_EQ(static_cast<std::int64_t>(stats.idle_nbytes), live("host_bytes"));
  EXPECT_LE(stats.high_water_nbytes, stats.limit_nbytes);
}

TEST(FirstTouch, PutsEveryPageInPlaceWithSeveralThreads) {
  constexpr std::size_t nbytes = 33 * MiB + 4096;
  void* const memory = ::mmap(nullptr, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    const ThreadLimit limit(3);
    touch_pages(static_cast<std::byte*>(memory), nbytes);
  }
  std::vector<unsigned char> resident(nbytes / 4096);
  ASSERT_EQ(::mincore(memory, nbytes, resident.data()), 0);
  EXPECT_TRUE(std::all_of(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; }));
  ::munmap(memory, nbytes);
}

// A directory that stands for the root of the file system.
class Machines : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ferry-pinned-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(Machines, LeaveWhatIsAvailable) {
  write("proc/meminfo", "MemTotal:       1000000 kB\nMemFree: 5 kB\nMemAvailable:     2048 kB\n");
  EXPECT_EQ(memory_headroom_nbytes(root_), 2 * MiB);
}

TEST_F(Machines, LeaveNothingToRefuseWhereTheySayNothing) {
  EXPECT_EQ(memory_headroom_nbytes(root_), UINT64_MAX);
  EXPECT_TRUE(may_touch(std::size_t{1} << 40, root_));
}

TEST_F(Machines, WithAControlGroupLeaveItsLimitLessWhatIsUsedAndCannotBeReclaimed) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/memory.max", "1000000\n");
  write("sys/fs/cgroup/a/memory.current", "700000\n");
  write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_anon 7\ninactive_file 200000\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  write("sys/fs/cgroup/a/b/memory.current", "700000\n");
  EXPECT_EQ(memory_headroom_nbytes(root_), 500000U);
}

TEST_F(Machines, WithAnOldControlGroupLeaveItsLimitToo) {
  write("proc/self/cgroup", "4:memory:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "400000\n");
  EXPECT_EQ(memory_headroom_nbytes(root_), 0U);
  write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 1\ntotal_inactive_file 150000\n");
  EXPECT_EQ(memory_headroom_nbytes(root_), 50000U);
}

TEST_F(Machines, KeepAnEighthOfTheHeadroomForOthers) {
  write("proc/meminfo", "MemAvailable: 16384 kB\n");
  EXPECT_TRUE(may_touch(14 * MiB, root_));
  EXPECT_FALSE(may_touch(14 * MiB + 4096, root_));
  write("proc/meminfo", "MemAvailable: 0 kB\n");
  EXPECT_FALSE(may_touch(MiB, root_));
  EXPECT_TRUE(may_touch(MiB - 4096, root_));
}

TEST_F(Machines, TellTheNodeOfADevice) {
  write("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
  write("sys/bus/pci/devices/0000:5e:00.0/numa_node", "-1\n");
  EXPECT_EQ(memory_node_of("0000:3B:00.0", root_), 1);
  EXPECT_EQ(memory_node_of("00000000:3B:00.0", root_), 1);
  EXPECT_EQ(memory_node_of("0000:5E:00.0", root_), std::nullopt);
  EXPECT_EQ(memory_node_of("0000:01:00.0", root_), std::nullopt);
  EXPECT_EQ(memory_node_of("", root_), std::nullopt);
}

TEST_F(Machines, RefuseNodesThatTheyHaveNot) {
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const data = static_cast<std::byte*>(memory);
  EXPECT_FALSE(prefer_memory_node(data, 4096, -1));
  EXPECT_FALSE(prefer_memory_node(data, 4096, 1000));
  EXPECT_FALSE(prefer_memory_node(data, 4096, 5000));
  ::munmap(memory, 4096);
}

}  // namespace
}  // namespace ferry
