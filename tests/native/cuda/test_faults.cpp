// Every call of the driver in turn fails at each of its uses: an error or a report, nothing left, and the next call
// works.
#include <sys/mman.h>

#include <cstdlib>

#include "cuda/driver_error.hpp"
#include "cuda/event.hpp"
#include "cuda/host_range.hpp"
#include "cuda/registration.hpp"
#include "cuda/stream.hpp"
#include "fake.hpp"

namespace ferry::cuda {
namespace {

using test::live;
using test::OnFakeDriver;

constexpr std::size_t nbytes = 4096;

class Faults : public OnFakeDriver {
 protected:
  // Uses everything once, on a device that is not the current one.
  static void use_all(const Driver& driver, void* memory) {
    PrimaryContexts primaries(driver);
    EventPool events(driver);
    const ContextScope scope(driver, primaries, 1, Primary::create);
    const Functions& functions = driver.functions();
    const RegistrationAttempt registered = register_host(scope, memory, nbytes);
    static_cast<void>(classify_host_range(scope, memory, nbytes));
    if (registered.registration) static_cast<void>(registered.registration->device_pointer());
    const OwnedStream first(scope);
    const OwnedStream second(scope);
    const Event done = events.take(scope, EventUse::ordering);
    const Event waited = events.take(scope, EventUse::waiting);
    done.record(first.handle());
    order_after(functions, second.handle(), done.handle());
    waited.record(second.handle());
    static_cast<void>(done.is_done());
    waited.wait();
    static_cast<void>(context_of(functions, second.handle()));
  }

  // What is left of one use in which the n-th call answers `code`, by kind of thing.
  struct Left {
    bool thrown;
    std::uint64_t reported;
    std::int64_t things;
  };
  Left use_with_fault(std::int64_t nth, CUresult code) {
    test::fake<void()>("fake_reset")();
    const Driver& driver = start({"two_devices"});
    test::use_device(0);
    test::fail("*", nth, code);
    const std::uint64_t before = cleanup_report().failures;
    const bool thrown = test::error_of([&] { use_all(driver, memory_); }) != "nothing";
    test::clear_faults();
    EXPECT_EQ(test::fake_text("fake_violations"), "") << "call " << nth;
    return {thrown, cleanup_report().failures - before,
            live("events") + live("streams") + live("host_registrations") + live("pushed_contexts") +
                live("primary_contexts") - 1};  // the framework's own
  }

  void* memory_ = std::aligned_alloc(nbytes, nbytes);
  ~Faults() override { std::free(memory_); }
};

TEST_F(Faults, LeaveNothingThatIsNotReported) {
  const Driver& driver = start({"two_devices"});
  test::use_device(0);
  use_all(driver, memory_);
  const auto uses = static_cast<std::int64_t>(test::calls().size());
  ASSERT_GE(uses, 40);
  int thrown = 0;
  int reported = 0;
  for (std::int64_t nth = 1; nth <= uses; ++nth) {
    for (const CUresult code : {result::out_of_memory, CUresult{999}}) {
      const Left left = use_with_fault(nth, code);
      if (left.reported == 0) {
        EXPECT_EQ(left.things, 0) << "call " << nth << " of " << uses << " answered " << code;
      }
      thrown += left.thrown ? 1 : 0;
      reported += left.reported > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(thrown, uses);  // of two codes for each call
  EXPECT_GT(reported, 10);  // by destructors
  test::fake<void()>("fake_reset")();
}

TEST_F(Faults, ThatStayAreNamedAndLeaveNoContextPushed) {
  for (std::int64_t nth = 1; nth <= 60; ++nth) {
    test::fake<void()>("fake_reset")();
    const Driver& driver = start({"two_devices"});
    test::use_device(0);
    test::fail("*", nth, 700);
    const std::string said = test::error_of([&] { use_all(driver, memory_); });
    if (said != "nothing") {
      EXPECT_NE(said.find("an earlier operation on this device failed"), std::string::npos) << said;
    }
  }
  test::fake<void()>("fake_reset")();
}

TEST_F(Faults, AtTheEndOfTheDriverAreNoFailuresOfCleanup) {
  for (std::int64_t nth = 1; nth <= 60; ++nth) {
    const Left left = use_with_fault(nth, result::deinitialized);
    EXPECT_EQ(left.reported, 0U) << "call " << nth;
  }
  test::fake<void()>("fake_reset")();
}

}  // namespace
}  // namespace ferry::cuda
