// Registrations of memory that others own: shared pages, failures, and when they go.
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "cuda/driver_error.hpp"
#include "pinned/host_pins.hpp"
#include "pinned/page_access.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::RegistrationOutcome;
using cuda::test::fail;
using cuda::test::live;
using test::OnRuntime;

constexpr std::size_t page = 4096;

class Mapped {
 public:
  explicit Mapped(std::size_t pages, int access = PROT_READ | PROT_WRITE)
      : nbytes_(pages * page),
        data_(static_cast<std::byte*>(::mmap(nullptr, nbytes_, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { ::munmap(data_, nbytes_); }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return data_ + offset; }

 private:
  std::size_t nbytes_;
  std::byte* data_;
};

class HostPinsOf : public OnRuntime {
 protected:
  PinAttempt pin(const std::vector<PinRequest>& requests, std::shared_ptr<void> owner = nullptr) {
    return pins.pin(runtime_->enter(0), requests, std::move(owner));
  }
  HostPins pins;
};

TEST_F(HostPinsOf, WholePagesAreCoveredAndGoWithTheRange) {
  const Mapped memory(4);
  {
    const PinAttempt attempt = pin({{memory.at(100), page, false}});
    ASSERT_TRUE(attempt.range);
    EXPECT_EQ(live("host_registrations"), 1);
    EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(2 * page));
    EXPECT_TRUE(pins.find(memory.at(0), 2 * page));
    EXPECT_FALSE(pins.find(memory.at(0), 2 * page + 1));
  }
  EXPECT_EQ(live("host_registrations"), 0);
  EXPECT_FALSE(pins.find(memory.at(0), 1));
}

TEST_F(HostPinsOf, NeighboursFillTheGapBetweenThem) {
  const Mapped memory(8);
  auto left = pin({{memory.at(0), 2 * page, false}}).range;
  auto right = pin({{memory.at(5 * page), page, false}}).range;
  auto all = pin({{memory.at(page), 6 * page, false}}).range;
  ASSERT_TRUE(left && right && all);
  EXPECT_EQ(live("host_registrations"), 4);
  EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(7 * page));
  EXPECT_EQ(all->piece_nbytes(memory.at(page), 6 * page), page);
  EXPECT_EQ(all->piece_nbytes(memory.at(2 * page), 6 * page), 3 * page);
  left.reset();
  right.reset();
  EXPECT_EQ(live("host_registrations"), 4);
  all.reset();
  EXPECT_EQ(live("host_registrations"), 0);
}

TEST_F(HostPinsOf, AnOwnerIsKeptUntilTheLastRangeThatNeedsItsPages) {
  const Mapped memory(4);
  auto owner = std::make_shared<int>(1);
  auto first = pin({{memory.at(0), page + 1, false}}, owner).range;
  auto second = pin({{memory.at(page + 1), page, false}}).range;
  first.reset();
  EXPECT_EQ(owner.use_count(), 2);
  second.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(HostPinsOf, ManyArraysArePinnedTogetherOrNotAtAll) {
  const Mapped a(2);
  const Mapped b(2);
  for (int nth = 1; nth <= 2; ++nth) {
    fail("cuMemHostRegister", nth, cuda::result::out_of_memory);
    const PinAttempt attempt = pin({{a.at(0), page, false}, {b.at(0), page, false}});
    EXPECT_FALSE(attempt.range);
    EXPECT_EQ(attempt.outcome, RegistrationOutcome::out_of_memory);
    EXPECT_EQ(live("host_registrations"), 0);
    cuda::test::clear_faults();
    cuda::test::forget_calls();
  }
  EXPECT_TRUE(pin({{a.at(0), page, false}, {b.at(0), page, false}}).range);
}

TEST_F(HostPinsOf, UseIsSeenUntilItEnds) {
  const Mapped memory(1);
  auto range = pin({{memory.at(0), page, false}}).range;
  auto owner = std::make_shared<int>(1);
  auto use = pins.find(memory.at(8), 8)->use(owner);
  EXPECT_TRUE(range->in_use());
  range.reset();
  EXPECT_EQ(live("host_registrations"), 1);
  EXPECT_EQ(owner.use_count(), 2);
  use.reset();
  EXPECT_EQ(live("host_registrations"), 0);
  EXPECT_EQ(owner.use_count(), 1);
}

TEST_F(HostPinsOf, WhoSeesNoUseAnyMoreIsTheLastOneToLetGo) {
  const Mapped memory(1);
  for (int round = 0; round < 50; ++round) {
    auto range = pin({{memory.at(0), page, false}}).range;
    std::atomic<bool> gone{false};
    std::shared_ptr<void> slow(nullptr, [&](void*) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      gone = true;
    });
    auto use = range->use(std::move(slow));
    std::thread other([&] { use.reset(); });
    while (range->in_use()) std::this_thread::yield();
    EXPECT_TRUE(gone);
    range.reset();
    EXPECT_EQ(live("host_registrations"), 0);
    other.join();
  }
}

TEST_F(HostPinsOf, PagesThatMayOnlyBeReadAreNotLentForWriting) {
  const Mapped memory(2, PROT_READ);
  EXPECT_FALSE(pages_are_writable(memory.at(0), page));
  const auto reading = pin({{memory.at(0), page, true}}).range;
  ASSERT_TRUE(reading);
  EXPECT_TRUE(reading->read_only());
  const PinAttempt writing = pin({{memory.at(0), page, false}});
  EXPECT_EQ(writing.outcome, RegistrationOutcome::already_registered);
  EXPECT_TRUE(pin({{memory.at(0), page, true}}).range);
}

TEST_F(HostPinsOf, ThreadsThatShareAllPagesNeverCollide) {
  const Mapped memory(32);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] {
      cuda::test::use_device(0);
      std::mt19937 random(seed);
      for (int round = 0; round < 200; ++round) {
        const std::size_t begin = random() % (31 * page);
        const std::size_t nbytes = 1 + random() % (32 * page - begin - 1);
        const PinAttempt attempt = pin({{memory.at(begin), nbytes, false}});
        if (!attempt.range || !pins.find(memory.at(begin), nbytes)) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  EXPECT_EQ(live("host_registrations"), 0);
}

class Adoption : public OnRuntime {};

TEST_F(Adoption, PagesKeepWhatTheyHoldAndBecomeThePools) {
  const auto made = pool();
  auto pages = mapped_pages(3 * page);
  std::memset(pages->data(), 7, 3 * page);
  std::byte* const data = pages->data();
  auto lease = made->adopt(runtime_->enter(0), pages);
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(pages, nullptr);
  EXPECT_EQ(lease->data(), data);
  EXPECT_EQ(std::to_integer<int>(data[page]), 7);
  EXPECT_EQ(made->find(data + 5, page), lease);
  EXPECT_EQ(made->stats().in_use_nbytes, 3 * page);
  lease.reset();
  EXPECT_EQ(made->stats().idle_nbytes, 3 * page);
  EXPECT_EQ(made->trim(0), 3 * page);
  EXPECT_EQ(live("host_registrations"), 0);
}

TEST_F(Adoption, WhatIsRefusedStaysTheCallers) {
  const auto made = pool(2 * page);
  auto pages = mapped_pages(3 * page);
  std::byte* const data = pages->data();
  EXPECT_EQ(made->adopt(runtime_->enter(0), pages), nullptr);  // beyond the limit
  ASSERT_NE(pages, nullptr);
  made->set_limit(100 * page);
  fail("cuMemHostRegister", 1, cuda::result::not_supported);
  EXPECT_EQ(made->adopt(runtime_->enter(0), pages), nullptr);
  ASSERT_NE(pages, nullptr);
  cuda::test::forget_calls();
  fail("cuMemHostRegister", 1, 304);
  EXPECT_THROW(static_cast<void>(made->adopt(runtime_->enter(0), pages)), Error);
  ASSERT_NE(pages, nullptr);
  EXPECT_EQ(pages->data(), data);
  std::memset(data, 1, 3 * page);
  const PinnedStats stats = made->stats();
  EXPECT_EQ(stats.refusals, 3U);
  EXPECT_EQ(stats.in_use_nbytes + stats.idle_nbytes + stats.retired_nbytes, 0U);
  EXPECT_EQ(live("host_registrations"), 0);
}

}  // namespace
}  // namespace ferry
