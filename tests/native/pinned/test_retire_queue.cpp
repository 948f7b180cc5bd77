#include <atomic>
#include <chrono>
#include <thread>

#include "child.hpp"
#include "pinned/retire_queue.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::test::fail;
using cuda::test::hold_work;
using test::OnRuntime;

class RetireQueues : public OnRuntime {
 protected:
  void TearDown() override {
    log_.clear();
    OnRuntime::TearDown();
  }

  std::shared_ptr<const cuda::Event> recorded(cuda::CUstream stream) {
    auto event = std::make_shared<cuda::Event>(runtime_->events().take(scope(), cuda::EventUse::ordering));
    event->record(stream);
    return event;
  }
  // Something that writes down when it dies.
  std::shared_ptr<void> noted(const std::string& what) {
    return {new int(0), [this, what](int* value) {
              delete value;
              log_.push_back(what + " gone");
            }};
  }
  Retired entry(cuda::CUstream stream, const std::string& name) {
    Retired made{recorded(stream), {}, {}, [this, name] { log_.push_back(name + " then"); }};
    made.sources.push_back(noted(name + " source"));
    made.memory.push_back(noted(name + " memory"));
    return made;
  }
  static void reap_often(RetireQueue& queue) {
    for (int i = 0; i < 100 && queue.stats().pending > 0; ++i) queue.reap();
  }

  std::vector<std::string> log_;
};

TEST_F(RetireQueues, HoldEverythingUntilTheWorkIsDone) {
  RetireQueue queue;
  hold_work(true);
  queue.add(entry(torch_stream(), "copy"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(queue.reap(), 0U);
  EXPECT_TRUE(log_.empty());
  EXPECT_EQ(queue.stats().pending, 1U);
  hold_work(false);
  reap_often(queue);
  EXPECT_EQ(log_, (std::vector<std::string>{"copy source gone", "copy memory gone", "copy then"}));
  EXPECT_EQ(queue.stats().pending, 0U);
  EXPECT_EQ(queue.stats().retired, 1U);
  EXPECT_EQ(queue.stats().abandoned, 0U);
}

TEST_F(RetireQueues, LetGoInTheOrderOfOneStream) {
  RetireQueue queue;
  const cuda::CUstream stream = torch_stream();
  for (const char* name : {"1", "2", "3", "4"}) queue.add(entry(stream, name));
  reap_often(queue);
  std::vector<std::string> thens;
  for (const std::string& line : log_) {
    if (line.ends_with("then")) thens.push_back(line);
  }
  EXPECT_EQ(thens, (std::vector<std::string>{"1 then", "2 then", "3 then", "4 then"}));
}

TEST_F(RetireQueues, DoNotLetASlowStreamDelayOthers) {
  RetireQueue queue;
  const cuda::CUstream slow = torch_stream();
  const cuda::CUstream fast = torch_stream();
  queue.add(entry(slow, "slow"));
  queue.add(entry(fast, "fast"));
  hold_work(true);
  queue.reap();
  hold_work(false);
  test::drain();
  test::fake<int(const char*, std::uint64_t)>("fake_schedule")("lazy", 0);
  EXPECT_EQ(queue.reap(), 2U);
}

TEST_F(RetireQueues, AskForAnEventOnceThatSeveralEntriesShare) {
  RetireQueue queue;
  const auto first = recorded(torch_stream());
  const auto second = recorded(torch_stream());
  hold_work(true);
  for (int i = 0; i < 6; ++i) queue.add({i % 2 == 0 ? first : second, {}, {}, {}});
  cuda::test::forget_calls();
  EXPECT_EQ(queue.reap(), 0U);
  EXPECT_EQ(cuda::test::count_of("cuEventQuery"), 2);
  hold_work(false);
  reap_often(queue);
  EXPECT_EQ(queue.stats().retired, 6U);
}

TEST_F(RetireQueues, AskWithRelaxedCaptures) {
  RetireQueue queue;
  queue.add(entry(torch_stream(), "copy"));
  cuda::test::forget_calls();
  queue.reap();
  const std::vector<std::string> names = cuda::test::names_of_calls();
  const auto query = std::find(names.begin(), names.end(), "cuEventQuery");
  ASSERT_NE(query, names.end());
  EXPECT_EQ(*(query - 1), "cuThreadExchangeStreamCaptureMode");
  EXPECT_EQ(*(query + 1), "cuThreadExchangeStreamCaptureMode");
  reap_often(queue);
}

TEST_F(RetireQueues, HoldNoLockWhileTheyLetGo) {
  RetireQueue queue;
  Retired first{recorded(torch_stream()), {}, {}, {}};
  std::size_t reaped_inside = 99;
  first.sources.emplace_back(new int(0), [&](int* value) {  // like a destructor that runs Python code
    delete value;
    queue.add({nullptr, {}, {}, {}});
    std::thread([&] { static_cast<void>(queue.stats()); }).join();
    reaped_inside = queue.reap();
  });
  queue.add(std::move(first));
  reap_often(queue);
  EXPECT_EQ(reaped_inside, 0U);
  EXPECT_EQ(queue.stats().retired, 2U);
}

TEST_F(RetireQueues, AbandonWhatADeviceThatIsLostMayTouch) {
  RetireQueue queue;
  const cuda::CUstream stream = torch_stream();
  const unsigned char byte = 1;
  using Write = int(cuda::CUdeviceptr, const void*, std::size_t, void*, int);
  test::fake<Write>("fake_write_later")(test::device_memory(1), &byte, 1, stream, 0);
  queue.add(entry(stream, "copy"));
  fail("execution", 1, cuda::result::illegal_address);
  reap_often(queue);
  EXPECT_EQ(log_, (std::vector<std::string>{"copy source gone", "copy then"}));
  EXPECT_EQ(queue.stats().abandoned, 1U);
  EXPECT_EQ(queue.stats().retired, 0U);
  cuda::test::clear_faults();
  cuda::test::reset_device(0);
  streams_.clear();
}

TEST_F(RetireQueues, AbandonAfterAResetWithoutAskingForDeadEvents) {
  RetireQueue queue;
  queue.add(entry(torch_stream(), "copy"));
  cuda::test::reset_device(0);
  streams_.clear();
  cuda::test::forget_calls();
  EXPECT_EQ(queue.reap(), 1U);
  EXPECT_EQ(cuda::test::count_of("cuEventQuery"), 0);
  EXPECT_EQ(queue.stats().abandoned, 1U);
  EXPECT_EQ(log_, (std::vector<std::string>{"copy source gone", "copy then"}));
}

TEST_F(RetireQueues, AskAgainWhereAnAnswerSaysNothingAboutTheWork) {
  RetireQueue queue;
  hold_work(true);
  queue.add(entry(torch_stream(), "copy"));
  for (const char* call : {"cuEventQuery", "cuThreadExchangeStreamCaptureMode"}) {
    fail(call, 1, 999);
    EXPECT_EQ(queue.reap(), 0U) << call;
    EXPECT_EQ(queue.reap(), 0U) << call;
  }
  EXPECT_TRUE(log_.empty());
  hold_work(false);
  reap_often(queue);
  EXPECT_EQ(queue.stats().retired, 1U);
}

TEST_F(RetireQueues, AbandonWhereNoAnswerEverSaysAnything) {
  RetireQueue queue;
  queue.add(entry(torch_stream(), "copy"));
  fail("cuEventQuery", 0, 999);
  for (int i = 0; i < 3; ++i) queue.reap();
  EXPECT_EQ(queue.stats().abandoned, 1U);
  EXPECT_EQ(log_, (std::vector<std::string>{"copy source gone", "copy then"}));
}

TEST_F(RetireQueues, KeepEverythingForGoodWhenTheyEnd) {
  hold_work(true);
  {
    RetireQueue queue;
    queue.add(entry(torch_stream(), "before"));
    queue.abandon();
    queue.add(entry(torch_stream(), "after"));
    EXPECT_EQ(queue.stats().abandoned, 2U);
    EXPECT_EQ(queue.stats().pending, 0U);
    EXPECT_EQ(queue.reap(), 0U);
  }
  hold_work(false);
  EXPECT_TRUE(log_.empty());
  test::fake<void()>("fake_reset")();  // their events stay, too
  streams_.clear();
  runtime_.reset();
}

TEST_F(RetireQueues, DoNothingInAForkedChild) {
  RetireQueue queue;
  queue.add(entry(torch_stream(), "copy"));
  EXPECT_EQ(cuda::test::in_child([&] {
              cuda::test::forget_calls();
              const std::size_t reaped = queue.reap();
              queue.abandon();
              queue.~RetireQueue();
              return std::to_string(reaped + log_.size() + cuda::test::calls().size());
            }),
            "0");
  reap_often(queue);
}

TEST_F(RetireQueues, AreSafeForManyThreads) {
  test::schedule("threaded");
  RetireQueue queue;
  std::atomic<int> gone{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    const cuda::CUstream stream = torch_stream();
    threads.emplace_back([&, stream] {
      cuda::test::use_device(0);
      for (int j = 0; j < 50; ++j) {
        queue.add({recorded(stream),
                   {},
                   {std::shared_ptr<void>(new int(0),
                                          [&](int* value) {
                                            delete value;
                                            ++gone;
                                          })},
                   {}});
        queue.reap();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 50000 && queue.stats().pending > 0; ++i) {
    queue.reap();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  EXPECT_EQ(gone.load(), 400);
  EXPECT_EQ(queue.stats().retired, 400U);
}

TEST_F(RetireQueues, NothingIsPendingOnlyWhenAllIsOver) {
  RetireQueue queue;
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> over{false};
    queue.add({recorded(torch_stream()), {}, {}, [&] {
                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                 over = true;
               }});
    std::thread other([&] {
      while (queue.reap() == 0) std::this_thread::yield();
    });
    while (queue.stats().pending > 0) std::this_thread::yield();
    EXPECT_TRUE(over);
    other.join();
  }
  EXPECT_EQ(queue.stats().retired, 20U);
}

}  // namespace
}  // namespace ferry
