#include "fake.hpp"

namespace ferry::cuda {
namespace {

using test::error_of;
using test::fake;
using test::OnFakeDriver;

class DriverInitialise : public OnFakeDriver {
 protected:
  std::string words(std::initializer_list<const char*> presets) {
    return error_of([&] { start(presets); });
  }
};

TEST_F(DriverInitialise, WorksOnEverySupportedDriver) {
  for (const char* preset : {"driver_525", "driver_535", "driver_550", "driver_560", "driver_570", "driver_580"}) {
    fake<void()>("fake_reset")();
    EXPECT_EQ(words({preset}), "nothing") << preset;
  }
}

TEST_F(DriverInitialise, RefusesDriversBeforeTheFloorWithTheirAge) {
  EXPECT_NE(words({"driver_515"}).find("it supports CUDA 11.7, and 12.0 (driver 525) is the oldest"),
            std::string::npos);
}

TEST_F(DriverInitialise, NamesAMachineWithoutDevices) {
  const std::string said = words({"no_device"});
  EXPECT_NE(said.find("it shows no device"), std::string::npos) << said;
  EXPECT_NE(said.find("CUDA_VISIBLE_DEVICES"), std::string::npos) << said;
}

TEST_F(DriverInitialise, NamesADriverThatShowsNoneThoughItInitialises) {
  start();
  test::fail("cuDeviceGetCount", 1, result::no_device);
  const OpenedDriver opened = Driver::open(FAKE_CUDA);
  EXPECT_EQ(opened.driver->initialise().value().kind, Unusable::no_device);
  EXPECT_EQ(opened.driver->functions_if_usable(), nullptr);
  EXPECT_FALSE(opened.driver->initialise().has_value()) << "a failure is not remembered";
}

TEST_F(DriverInitialise, NamesWrongInstallations) {
  EXPECT_NE(words({"stub_library"}).find("the toolkit's stub"), std::string::npos);
  fake<void()>("fake_reset")();
  EXPECT_NE(words({"driver_mismatch"}).find("another release than the NVIDIA kernel module"), std::string::npos);
  fake<void()>("fake_reset")();
  EXPECT_NE(words({"compat_not_supported"}).find("forward-compatibility library"), std::string::npos);
}

TEST_F(DriverInitialise, SpeaksTheDriversWordsForOtherFailures) {
  test::fail("cuInit", 1, 999);
  EXPECT_NE(words({}).find("it cannot be initialised: code 999, unknown error"), std::string::npos);
}

TEST_F(DriverInitialise, TakesAFunctionThatIsMissingOnThisDriverForAnUnusableOne) {
  EXPECT_NE(words({"without:cuStreamGetCtx"}).find("has no cuStreamGetCtx"), std::string::npos);
}

TEST_F(DriverInitialise, CreatesNoContext) {
  start({"two_devices"});
  EXPECT_EQ(test::live("primary_contexts"), 0);
}

}  // namespace
}  // namespace ferry::cuda
