// What holds for the process: which library is taken, when it is initialised, what a fork leaves. Each test works in a
// child of its own, where no driver has been looked for yet.
#include <cstdlib>
#include <thread>

#include "child.hpp"
#include "stub.hpp"

namespace ferry::cuda {
namespace {

using test::in_child;
using test::Stub;

std::string words_of_driver() {
  try {
    return "CUDA " + cuda_version_text(driver().version());
  } catch (const Error& error) {
    return error.what();
  }
}

std::string words_of_functions(const Driver& found) {
  try {
    static_cast<void>(found.functions());
    return "functions";
  } catch (const Error& error) {
    return error.what();
  }
}

void use_library(const char* path) { ::setenv("TENSORFERRY_LIBCUDA", path, 1); }

TEST(DriverProcess, TakesTheLibraryThatTheVariableNames) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER);
              Stub stub(STUB_DRIVER);
              stub.set(12080);
              return words_of_driver();
            }),
            "CUDA 12.8");
}

TEST(DriverProcess, NamesTheLibraryThatTheVariableNamesWhenItIsMissing) {
  const std::string said = in_child([] {
    use_library("/nowhere/driver.so");
    return words_of_driver();
  });
  EXPECT_TRUE(said.starts_with("the driver library /nowhere/driver.so: it cannot be opened (")) << said;
}

TEST(DriverProcess, TakesTheSystemsDriverWhereTheVariableIsEmpty) {
  const std::string said = in_child([] {
    use_library("");
    return driver_status();
  });
  // With a driver or without: it is the library of the usual name.
  EXPECT_NE(said.find("libcuda.so.1"), std::string::npos) << said;
}

TEST(DriverProcess, StatusOpensTheLibraryAndInitialisesNothing) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER);
              const Stub stub(STUB_DRIVER);
              const std::string status = driver_status();
              return status + ", " + std::to_string(stub.calls()) + " calls";
            }),
            std::string("CUDA 12.4 (") + STUB_DRIVER + "), 0 calls");
}

TEST(DriverProcess, StatusSaysWhyThereIsNoDriver) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER_NONE);
              return driver_status();
            }),
            std::string("not usable: the driver library ") + STUB_DRIVER_NONE +
                ": it exports no cuGetProcAddress, so it is older than CUDA 11.3 or no NVIDIA driver");
}

TEST(DriverProcess, InitialisesOnceForAllCalls) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER);
              const Stub stub(STUB_DRIVER);
              static_cast<void>(driver());
              const int once = stub.calls();
              static_cast<void>(driver());
              return std::to_string(once) + " " + std::to_string(stub.calls());
            }),
            "2 2");  // cuInit and cuDeviceGetCount
}

TEST(DriverProcess, TriesAgainAfterAFailedInitialisation) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER);
              Stub stub(STUB_DRIVER);
              static_cast<void>(driver_status());
              stub.set(12040, 802);
              const std::string before = words_of_driver();
              stub.set(12040);
              return before + " | " + words_of_driver();
            }),
            std::string("the driver library ") + STUB_DRIVER +
                ": it cannot be initialised: code 802; see whether nvidia-smi works, and what `tensorferry doctor` "
                "says | CUDA 12.4");
}

TEST(DriverProcess, CallsNothingInAForkedChildAndSaysWhy) {
  const std::string said = in_child([] {
    use_library(STUB_DRIVER);
    const Stub stub(STUB_DRIVER);
    const Driver& used = driver();
    const int before = stub.calls();
    return in_child([&] {
      std::string words = words_of_driver() + " | " + words_of_functions(used);
      words += used.functions_if_usable() == nullptr ? " | none" : " | some";
      return words + " | " + std::to_string(stub.calls() - before);
    });
  });
  const std::string error =
      "a device in a forked process: CUDA was initialised before the fork, and the driver does not work in the child; "
      "start processes with multiprocessing's \"spawn\" or \"forkserver\", or use no device before the fork";
  EXPECT_EQ(said, error + " | " + error + " | none | 0");
}

TEST(DriverProcess, WorksInAChildThatWasForkedBeforeTheFirstUse) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER);
              const Stub stub(STUB_DRIVER);
              static_cast<void>(driver_status());
              return in_child([] { return words_of_driver(); });
            }),
            "CUDA 12.4");
}

TEST(DriverProcess, DoesNotHangInAChildThatWasForkedWhileAnotherThreadInitialises) {
  const std::string said = in_child([] {
    use_library(STUB_DRIVER);
    Stub stub(STUB_DRIVER);
    stub.hold(true);
    std::thread initialising([] { static_cast<void>(driver()); });
    while (stub.calls() == 0) std::this_thread::yield();
    std::string words = in_child([&stub] {
      stub.hold(false);
      return words_of_driver();
    });
    stub.hold(false);
    initialising.join();
    return words + " | " + words_of_driver();
  });
  EXPECT_TRUE(said.starts_with("a device in a forked process")) << said;
  EXPECT_TRUE(said.ends_with(" | CUDA 12.4")) << said;
}

TEST(DriverProcess, TriesAgainInAChildWhereTheParentsInitialisationHadFailed) {
  EXPECT_EQ(in_child([] {
              use_library(STUB_DRIVER);
              Stub stub(STUB_DRIVER);
              static_cast<void>(driver_status());
              stub.set(12040, 802);
              static_cast<void>(words_of_driver());
              stub.set(12040);
              return in_child([] { return words_of_driver(); });
            }),
            "CUDA 12.4");
}

TEST(DriverProcess, NamesTheForkWhereAnotherLibraryUsedTheDriverBefore) {
  const std::string said = in_child([] {
    use_library(STUB_DRIVER);
    Stub stub(STUB_DRIVER);
    static_cast<void>(driver_status());
    stub.set(12040, result::not_initialized);  // what cuInit answers in such a child
    return words_of_driver();
  });
  EXPECT_TRUE(said.starts_with("a device in a forked process: CUDA was initialised before the fork")) << said;
}

TEST(DriverProcess, FunctionsBeforeInitialisationAreAnError) {
  const Stub stub(STUB_DRIVER);
  const OpenedDriver opened = Driver::open(STUB_DRIVER);
  EXPECT_EQ(words_of_functions(*opened.driver),
            "a function of the driver: the driver is not initialised; initialise it first");
}

}  // namespace
}  // namespace ferry::cuda
