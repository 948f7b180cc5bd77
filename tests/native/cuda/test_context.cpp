#include <array>

#include "child.hpp"
#include "cuda/driver_error.hpp"
#include "fake.hpp"

namespace ferry::cuda {
namespace {

using test::count_of;
using test::error_of;
using test::live;
using test::OnFakeDriver;
using test::reset_device;
using test::use_device;

class Contexts : public OnFakeDriver {
 protected:
  void SetUp() override {
    OnFakeDriver::SetUp();
    driver_ = &start({"two_devices"});
    primaries_.emplace(*driver_);
  }
  void TearDown() override {
    primaries_.reset();
    OnFakeDriver::TearDown();
  }
  [[nodiscard]] ContextScope scope(int device, Primary policy = Primary::if_active) {
    return {*driver_, *primaries_, device, policy};
  }
  [[nodiscard]] const Functions& functions() const { return driver_->functions(); }

  Driver* driver_ = nullptr;
  std::optional<PrimaryContexts> primaries_;
};

TEST_F(Contexts, TheCurrentOneStaysWhereItBelongsToTheDevice) {
  use_device(0);
  const CUcontext before = current_context(functions());
  {
    const ContextScope inside = scope(0);
    EXPECT_FALSE(inside.pushed());
    EXPECT_EQ(inside.context(), identity_of(functions(), before));
    EXPECT_EQ(inside.device(), 0);
  }
  EXPECT_EQ(count_of("cuCtxPushCurrent"), 0);
  EXPECT_EQ(count_of("cuCtxPopCurrent"), 0);
  EXPECT_EQ(current_context(functions()), before);
}

TEST_F(Contexts, ThePrimaryOneOfAnotherDeviceIsPushedAndPopped) {
  use_device(1);
  use_device(0);
  const CUcontext before = current_context(functions());
  {
    const ContextScope inside = scope(1);
    EXPECT_TRUE(inside.pushed());
    EXPECT_EQ(current_device(functions()), 1);
    EXPECT_EQ(current_context(functions()), inside.context().handle);
  }
  EXPECT_EQ(current_context(functions()), before);
  EXPECT_EQ(live("pushed_contexts"), 0);
}

TEST_F(Contexts, AThreadWithoutOneGetsOneAndHasNoneAgainAfterwards) {
  EXPECT_EQ(current_device(functions()), std::nullopt);
  {
    const ContextScope inside = scope(0, Primary::create);
    EXPECT_EQ(current_device(functions()), 0);
  }
  EXPECT_EQ(current_context(functions()), nullptr);
}

TEST_F(Contexts, AnInactiveOneIsCreatedForANamedDeviceOnly) {
  EXPECT_EQ(error_of([&] { static_cast<void>(scope(1)); }),
            "device 1: it has no active context; use a tensor of that device first, or name the device");
  EXPECT_EQ(live("contexts_activated"), 0);
  {
    const ContextScope inside = scope(1, Primary::create);
  }
  EXPECT_EQ(live("contexts_activated"), 1);
}

TEST_F(Contexts, AnActiveOneIsRetainedOnceAndReleasedAtTheEnd) {
  for (int i = 0; i < 3; ++i) {
    const ContextScope inside = scope(1, Primary::create);
  }
  EXPECT_EQ(count_of("cuDevicePrimaryCtxRetain"), 1);
  EXPECT_EQ(live("primary_contexts"), 1);
  primaries_.reset();
  EXPECT_EQ(live("primary_contexts"), 0);
}

TEST_F(Contexts, AResetIsSeenAndTheReferencesStayBalanced) {
  const ContextIdentity before = primaries_->find(0, Primary::create).value();
  EXPECT_TRUE(is_alive(functions(), before));
  reset_device(0);
  EXPECT_FALSE(is_alive(functions(), before));
  const ContextIdentity after = primaries_->find(0, Primary::if_active).value();
  EXPECT_NE(after, before);
  EXPECT_TRUE(is_alive(functions(), after));
  primaries_.reset();
  EXPECT_EQ(live("primary_contexts"), 0);
}

TEST_F(Contexts, ScopesNest) {
  {
    const ContextScope outer = scope(0, Primary::create);
    const ContextScope inner = scope(1, Primary::create);
    const ContextScope again = scope(0);
    EXPECT_TRUE(again.pushed());
    EXPECT_EQ(again.context(), outer.context());
  }
  EXPECT_EQ(live("pushed_contexts"), 0);
}

TEST_F(Contexts, AnErrorOfAnyCallLeavesNothingPushedAndNothingRetained) {
  for (const char* call : {"cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxGetId", "cuDevicePrimaryCtxGetState",
                           "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent"}) {
    use_device(1);
    use_device(0);
    primaries_.emplace(*driver_);
    test::forget_calls();
    test::fail(call, 1, 999);
    EXPECT_NE(error_of([&] { static_cast<void>(scope(1)); }).find(std::string(call) + ": the driver answered 999"),
              std::string::npos)
        << call;
    EXPECT_EQ(live("pushed_contexts"), 0) << call;
    test::clear_faults();
    {
      EXPECT_TRUE(scope(1).pushed()) << call;
    }
    primaries_.reset();
    EXPECT_EQ(count_of("cuDevicePrimaryCtxRetain") - (std::string(call) == "cuDevicePrimaryCtxRetain" ? 1 : 0),
              count_of("cuDevicePrimaryCtxRelease"))
        << call;
  }
}

TEST_F(Contexts, APopThatFailsIsReportedAndMadeOnceMore) {
  const CleanupReport before = cleanup_report();
  const CUcontext outside = current_context(functions());
  {
    const ContextScope inside = scope(0, Primary::create);
    test::fail("cuCtxPopCurrent", 1, 999);
  }
  EXPECT_EQ(cleanup_report().failures, before.failures + 1);
  EXPECT_EQ(cleanup_report().last_code, 999);
  EXPECT_EQ(current_context(functions()), outside);
}

TEST_F(Contexts, APushThatIsAnsweredByAnEarlierFailureLeavesNothingPushed) {
  const CUcontext outside = current_context(functions());
  test::fail("cuCtxPushCurrent", 1, 999, true);
  EXPECT_NE(error_of([&] { const ContextScope inside = scope(0, Primary::create); }).find("999"), std::string::npos);
  EXPECT_EQ(current_context(functions()), outside);
}

TEST_F(Contexts, AContextSetByForeignCodeMeanwhileIsReported) {
  use_device(1);
  const CUcontext foreign = current_context(functions());
  const CleanupReport before = cleanup_report();
  {
    const ContextScope inside = scope(0, Primary::create);
    test::as_somebody_else([foreign] { test::driver_function<int(CUcontext)>("cuCtxSetCurrent", 4000)(foreign); });
  }
  EXPECT_EQ(cleanup_report().failures, before.failures + 1);
  EXPECT_STREQ(cleanup_report().last_call, "cuCtxPopCurrent");
}

TEST_F(Contexts, AForkedChildPopsAndReleasesNothing) {
  primaries_.emplace(*driver_);
  std::optional<ContextScope> inside(std::in_place, *driver_, *primaries_, 0, Primary::create);
  EXPECT_EQ(test::in_child([&] {
              test::forget_calls();
              inside.reset();
              primaries_.reset();
              return std::to_string(test::calls().size());
            }),
            "0");
  inside.reset();
}

class HostMemoryContext : public Contexts {
 protected:
  [[nodiscard]] std::string choice(std::optional<int> torch_ordinal = std::nullopt) const {
    const auto chosen = context_for_host_memory(functions(), torch_ordinal);
    if (!chosen) return "none";
    const std::array names{"current", "torch", "other"};
    return names.at(static_cast<std::size_t>(chosen->origin)) + std::string(" ") + std::to_string(chosen->device);
  }
  // Makes a device's context active without making it current here.
  static void activate(int device) {
    use_device(device);
    CUcontext popped = nullptr;
    test::as_somebody_else([&] { test::driver_function<int(CUcontext)>("cuCtxSetCurrent", 4000)(popped); });
  }
};

TEST_F(HostMemoryContext, IsTheCurrentOneFirst) {
  activate(1);
  use_device(0);
  EXPECT_EQ(choice(1), "current 0");
}

TEST_F(HostMemoryContext, IsThatOfTorchsDeviceNext) {
  activate(0);
  activate(1);
  EXPECT_EQ(choice(1), "torch 1");
}

TEST_F(HostMemoryContext, IsThatOfAnyDeviceWhereOneIsActive) {
  activate(1);
  EXPECT_EQ(choice(), "other 1");
  EXPECT_EQ(choice(0), "other 1") << "torch's device has no context";
}

TEST_F(HostMemoryContext, IsNoneWhereNoneIsActiveAndNoneIsCreated) {
  EXPECT_EQ(choice(), "none");
  EXPECT_EQ(choice(0), "none");
  EXPECT_EQ(live("primary_contexts"), 0);
}

}  // namespace
}  // namespace ferry::cuda
