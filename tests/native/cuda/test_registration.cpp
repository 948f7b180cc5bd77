#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "child.hpp"
#include "cuda/driver_error.hpp"
#include "cuda/host_range.hpp"
#include "cuda/registration.hpp"
#include "fake.hpp"

namespace ferry::cuda {
namespace {

using test::count_of;
using test::error_of;
using test::live;
using test::OnFakeDevice;

const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

// Pages of our own, gone with the object.
class Pages {
 public:
  explicit Pages(std::size_t count, int protection = PROT_READ | PROT_WRITE)
      : nbytes_(count * page),
        data_(static_cast<std::byte*>(::mmap(nullptr, nbytes_, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { ::munmap(data_, nbytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* at(std::size_t offset) const { return data_ + offset; }
  [[nodiscard]] std::size_t nbytes() const { return nbytes_; }

 private:
  std::size_t nbytes_;
  std::byte* data_;
};

class Registrations : public OnFakeDevice {
 protected:
  RegistrationAttempt attempt(const Pages& pages, HostAccess access = HostAccess::read_write) {
    return register_host(scope(), pages.at(0), pages.nbytes(), access);
  }
};

TEST_F(Registrations, CoverWholePagesForAllContextsAndMapped) {
  const Pages pages(3);
  const RegistrationAttempt attempt = register_host(scope(), pages.at(page - 1), page + 2);
  ASSERT_EQ(attempt.outcome, RegistrationOutcome::registered);
  EXPECT_EQ(attempt.registration->data(), pages.at(0));
  EXPECT_EQ(attempt.registration->nbytes(), 3 * page);
  EXPECT_EQ(count_of("cuMemHostRegister bytes=" + std::to_string(3 * page) + " flags=3"), 1);
}

TEST_F(Registrations, DoNotGrowWhereTheRangeIsWholePages) {
  const Pages pages(2);
  EXPECT_EQ(attempt(pages).registration.value().nbytes(), 2 * page);
}

TEST_F(Registrations, EndWithTheObject) {
  const Pages pages(1);
  {
    RegistrationAttempt made = attempt(pages);
    const Registration moved(std::move(made.registration.value()));
    EXPECT_EQ(live("host_registrations"), 1);
  }
  EXPECT_EQ(live("host_registrations"), 0);
  EXPECT_EQ(count_of("cuMemHostUnregister"), 1);
}

TEST_F(Registrations, EndOnceWhenAsked) {
  const Pages pages(1);
  RegistrationAttempt made = attempt(pages);
  EXPECT_EQ(made.registration->release(), success);
  EXPECT_EQ(live("host_registrations"), 0);
  EXPECT_EQ(made.registration->release(), success);
  EXPECT_EQ(count_of("cuMemHostUnregister"), 1);
}

TEST_F(Registrations, RelaxCapturesAroundBothCalls) {
  const Pages pages(1);
  {
    const RegistrationAttempt made = attempt(pages);
  }
  const std::vector<std::string> names = test::names_of_calls();
  const std::string exchange = "cuThreadExchangeStreamCaptureMode";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != "cuMemHostRegister" && names[i] != "cuMemHostUnregister") continue;
    EXPECT_EQ(names.at(i - 1), exchange);
    EXPECT_EQ(names.at(i + 1), exchange);
  }
  EXPECT_EQ(count_of(exchange), 4);
}

TEST_F(Registrations, EndInAThreadWithoutAContextToo) {
  const Pages pages(1);
  RegistrationAttempt made = attempt(pages);
  std::thread([&] { made.registration.reset(); }).join();
  EXPECT_EQ(live("host_registrations"), 0);
  EXPECT_EQ(count_of("cuCtxPushCurrent"), 1);
  EXPECT_EQ(live("pushed_contexts"), 0);
}

TEST_F(Registrations, RefuseEmptyRangesAndThoseBeyondTheAddressSpace) {
  const Pages pages(1);
  EXPECT_EQ(register_host(scope(), pages.at(0), 0).outcome, RegistrationOutcome::invalid_range);
  EXPECT_EQ(register_host(scope(), pages.at(0), SIZE_MAX - 1).outcome, RegistrationOutcome::invalid_range);
  auto* const last = reinterpret_cast<void*>(UINTPTR_MAX);
  EXPECT_EQ(register_host(scope(), last, 1).outcome, RegistrationOutcome::invalid_range);
  EXPECT_EQ(count_of("cuMemHostRegister"), 0);
}

TEST_F(Registrations, SayThatAPageIsRegisteredAlready) {
  const Pages pages(2);
  const RegistrationAttempt first = register_host(scope(), pages.at(0), 10);
  const RegistrationAttempt second = register_host(scope(), pages.at(page - 10), 20);
  EXPECT_EQ(second.outcome, RegistrationOutcome::already_registered);
  EXPECT_EQ(second.code, 712);
  EXPECT_FALSE(second.registration.has_value());
  EXPECT_EQ(live("host_registrations"), 1);
}

TEST_F(Registrations, GiveReadOnlyMemoryItsFlag) {
  const Pages pages(1, PROT_READ);
  const RegistrationAttempt made = attempt(pages, HostAccess::read_only);
  EXPECT_EQ(made.outcome, RegistrationOutcome::registered);
  EXPECT_EQ(count_of("cuMemHostRegister bytes=" + std::to_string(page) + " flags=11"), 1);
}

TEST_F(Registrations, ThrowWhatHasNoOtherWay) {
  const Pages pages(1);
  test::fail("cuMemHostRegister", 1, 999);
  EXPECT_NE(error_of([&] { static_cast<void>(attempt(pages)); }).find("cuMemHostRegister: the driver answered 999"),
            std::string::npos);
  test::fail("cuMemHostRegister", 1, 719);
  EXPECT_NE(error_of([&] { static_cast<void>(attempt(pages)); }).find("an earlier operation"), std::string::npos);
  test::clear_faults();
  test::reset_device(0);
}

TEST_F(Registrations, DoNotRegisterWhereCapturesCannotBeRelaxed) {
  const Pages pages(1);
  test::fail("cuThreadExchangeStreamCaptureMode", 1, 999);
  EXPECT_NE(error_of([&] { static_cast<void>(attempt(pages)); }), "nothing");
  EXPECT_EQ(count_of("cuMemHostRegister"), 0);
}

TEST_F(Registrations, ReportAnEndThatFails) {
  const Pages pages(1);
  const CleanupReport before = cleanup_report();
  {
    const RegistrationAttempt made = attempt(pages);
    test::fail("cuMemHostUnregister", 1, 999);
  }
  EXPECT_EQ(cleanup_report().failures, before.failures + 1);
  EXPECT_STREQ(cleanup_report().last_call, "cuMemHostUnregister");
  EXPECT_EQ(functions().cuMemHostUnregister(pages.at(0)), success);  // for the next test
}

TEST_F(Registrations, CallNothingInAForkedChild) {
  const Pages pages(1);
  RegistrationAttempt made = attempt(pages);
  EXPECT_EQ(test::in_child([&] {
              test::forget_calls();
              made.registration.reset();
              return std::to_string(test::calls().size());
            }),
            "0");
}

struct Refusal {
  const char* preset;
  RegistrationOutcome outcome;
  CUresult code;
  const char* name;
};

class RegistrationRefusals : public OnFakeDevice, public ::testing::WithParamInterface<Refusal> {
 protected:
  void SetUp() override { begin({GetParam().preset}); }
};

TEST_P(RegistrationRefusals, AreOutcomesAndLeaveNothing) {
  const Pages pages(512);  // 2 MiB: more than the budget of the preset
  const HostAccess access =
      GetParam().preset == std::string("no_read_only_register") ? HostAccess::read_only : HostAccess::read_write;
  const RegistrationAttempt made = register_host(scope(), pages.at(0), pages.nbytes(), access);
  EXPECT_EQ(made.outcome, GetParam().outcome);
  EXPECT_EQ(made.code, GetParam().code);
  EXPECT_FALSE(made.registration.has_value());
  EXPECT_EQ(live("host_registrations"), 0);
}

INSTANTIATE_TEST_SUITE_P(
    , RegistrationRefusals,
    ::testing::Values(Refusal{"register_unsupported", RegistrationOutcome::not_supported, 801, "NotSupported"},
                      Refusal{"register_not_permitted", RegistrationOutcome::not_permitted, 800, "NotPermitted"},
                      Refusal{"register_budget", RegistrationOutcome::out_of_memory, 2, "OutOfMemory"},
                      Refusal{"no_read_only_register", RegistrationOutcome::not_supported, 801, "ReadOnly"}),
    [](const auto& refusal) { return std::string(refusal.param.name); });

class DifferentPointers : public OnFakeDevice {
 protected:
  void SetUp() override { begin({"host_pointers_differ"}); }
};

TEST_F(DifferentPointers, OfADeviceAreAskedFor) {
  const Pages pages(1);
  const RegistrationAttempt made = register_host(scope(), pages.at(0), page);
  const CUdeviceptr pointer = made.registration.value().device_pointer();
  EXPECT_NE(pointer, 0U);
  EXPECT_NE(pointer, static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pages.at(0))));
}

class HostRanges : public OnFakeDevice {
 protected:
  HostRange classify(const void* data, std::size_t nbytes) { return classify_host_range(scope(), data, nbytes); }
};

TEST_F(HostRanges, UnknownToTheDriverArePageable) {
  const Pages pages(1);
  const RegistrationAttempt elsewhere = register_host(scope(), Pages(1).at(0), 0);
  EXPECT_EQ(classify(pages.at(0), page), HostRange::pageable);
  EXPECT_EQ(classify(pages.at(5), 0), HostRange::pageable);
}

TEST_F(HostRanges, InsideOneRegistrationArePinned) {
  const Pages pages(2);
  const RegistrationAttempt made = register_host(scope(), pages.at(0), 2 * page);
  EXPECT_EQ(classify(pages.at(0), 2 * page), HostRange::pinned);
  EXPECT_EQ(classify(pages.at(100), page), HostRange::pinned);
  EXPECT_EQ(classify(pages.at(2 * page - 1), 1), HostRange::pinned);
}

TEST_F(HostRanges, AcrossTwoRegistrationsArePinnedInParts) {
  const Pages pages(2);
  const RegistrationAttempt first = register_host(scope(), pages.at(0), page);
  const RegistrationAttempt second = register_host(scope(), pages.at(page), page);
  EXPECT_EQ(classify(pages.at(0), 2 * page), HostRange::pinned_in_parts);
  EXPECT_EQ(classify(pages.at(0), page), HostRange::pinned);
  EXPECT_EQ(classify(pages.at(page), page), HostRange::pinned);
}

TEST_F(HostRanges, KnownAtOneEndAreMixed) {
  const Pages pages(3);
  const RegistrationAttempt made = register_host(scope(), pages.at(page), page);
  EXPECT_EQ(classify(pages.at(0), 2 * page), HostRange::mixed);
  EXPECT_EQ(classify(pages.at(page), 2 * page), HostRange::mixed);
}

TEST_F(HostRanges, OfADeviceAreNamed) {
  const unsigned long long memory = test::fake<unsigned long long(std::size_t, int)>("fake_alloc")(4096, 0);
  EXPECT_EQ(classify(reinterpret_cast<void*>(static_cast<std::uintptr_t>(memory)), 4096), HostRange::device);
}

TEST_F(HostRanges, ThrowWhatTheDriverAnswers) {
  const std::array<std::byte, 16> bytes{};
  test::fail("cuPointerGetAttributes", 2, 999);
  EXPECT_NE(error_of([&] { static_cast<void>(classify(bytes.data(), 16)); }).find("cuPointerGetAttributes"),
            std::string::npos);
}

}  // namespace
}  // namespace ferry::cuda
