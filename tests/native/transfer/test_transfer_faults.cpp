// Every call of the driver in turn fails, before or after it was accepted: the call says so, nothing is left that is
// not accounted for, and the next one works.
#include <sstream>

#include "cuda/driver_error.hpp"
#include "transfer/abandoned.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

struct Outcome {
  std::string wrong;  // values that are not right although nothing was said
  std::vector<std::string> said;
  std::uint64_t accounted = 0;  // things abandoned, and cleanups that failed and were reported
  std::string end;
  std::int64_t calls = 0;
};

// Everything there is, once, on a device that is not the current one.
class AllTransfers {
 public:
  explicit AllTransfers(TransferWorld& world) : world_(world), stream_(world.made_stream(1, 1)) {}

  void run(Outcome& outcome) {
    attempt(outcome, [&] { download(outcome, Snapshot::always, false); });
    attempt(outcome, [&] { download(outcome, Snapshot::never, false); });
    attempt(outcome, [&] { download(outcome, Snapshot::automatic, true); });
    attempt(outcome, [&] { through_ring(outcome); });
    attempt(outcome, [&] { upload(outcome); });
    attempt(outcome, [&] { upload_pinned(outcome); });
  }

 private:
  template <class Run>
  static void attempt(Outcome& outcome, Run run) {
    const std::string said = error_text(run);
    if (!said.empty()) outcome.said.push_back(said);
  }

  Strided image() { return packed_image(random_, DType::float32, {20, 60}); }

  void download(Outcome& outcome, Snapshot snapshot, bool drop) {
    const Strided one = image();
    const DeviceTensor tensor = world_.tensor(one, stream_, 1);
    const HostTarget target = world_.target(one, 1);
    Transfers::Batch batch(world_.transfers());
    batch.download(tensor, target, snapshot, BackPressure::wait);
    if (drop) return;
    const auto pending = batch.close();
    pending->wait();
    outcome.wrong += difference(values_of(target.ref), values_of(one.ref), "a download");
  }

  void through_ring(Outcome& outcome) {
    const Strided one = image();
    const Strided destination = image();
    const DeviceTensor tensor = world_.tensor(one, stream_, 1);
    world_.transfers().download_through_ring(tensor, destination.ref);
    outcome.wrong += difference(values_of(destination.ref), values_of(one.ref), "a download through the ring");
  }

  void upload(Outcome& outcome) {
    const Strided one = image();
    const Strided source = image();
    const DeviceTensor tensor = world_.tensor(one, stream_, 1);
    world_.transfers().upload_through_ring(tensor, source.ref)->wait();
    outcome.wrong += difference(values_on_device(tensor, one), values_of(source.ref), "an upload");
  }

  void upload_pinned(Outcome& outcome) {
    const Strided one = image();
    const DeviceTensor tensor = world_.tensor(one, stream_, 1);
    const HostTarget source = world_.target(image(), 1);
    Transfers::Batch batch(world_.transfers());
    batch.upload_pinned(tensor, source);
    batch.close()->wait();
    outcome.wrong += difference(values_on_device(tensor, one), values_of(source.ref), "a pinned upload");
  }

  TransferWorld& world_;
  CUstream stream_;
  Random random_{1};
};

struct Fault {
  std::string call;  // "*" for any
  std::int64_t nth = 0;
  cuda::CUresult code = 0;
  bool after = false;

  [[nodiscard]] std::string name() const {
    return call + " " + std::to_string(nth) + " answered " + std::to_string(code) + (after ? " after acceptance" : "");
  }
};

Outcome run_with(const char* schedule, const Fault& fault) {
  WorldOptions options;
  options.schedule = schedule;
  options.presets = {"two_devices"};
  Outcome outcome;
  TransferWorld world(options);
  const std::uint64_t before = abandoned_holds() + cuda::cleanup_report().failures;
  {
    AllTransfers transfers(world);
    cuda::test::forget_calls();
    if (fault.nth > 0) cuda::test::fail(fault.call.c_str(), fault.nth, fault.code, fault.after);
    transfers.run(outcome);
    outcome.calls = static_cast<std::int64_t>(cuda::test::calls().size());
    cuda::test::clear_faults();
    if (!cuda::is_sticky(fault.code)) {
      Outcome again;
      transfers.run(again);
      for (const std::string& said : again.said) outcome.wrong += "afterwards: " + said + "\n";
      outcome.wrong += again.wrong;
    }
  }
  world.settle();
  outcome.accounted =
      world.transfers().retired().stats().abandoned + world.transfers().results().stats().abandoned_nbytes;
  outcome.end = world.end();
  outcome.accounted += abandoned_holds() + cuda::cleanup_report().failures - before;
  return outcome;
}

bool only_leftovers(const std::string& end) {
  std::istringstream lines(end);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" are left") == std::string::npos) return false;
  }
  return true;
}

class TransferFaults : public ::testing::TestWithParam<const char*> {};

// Did it fail, and was everything right in spite of it?
bool expect_told(const char* schedule, const Fault& fault) {
  const Outcome outcome = run_with(schedule, fault);
  EXPECT_EQ(outcome.wrong, "") << fault.name();
  EXPECT_TRUE(only_leftovers(outcome.end)) << fault.name() << "\n" << outcome.end;
  if (outcome.accounted == 0) {
    EXPECT_EQ(outcome.end, "") << fault.name();
  }
  for (const std::string& said : outcome.said) EXPECT_NE(said.find("; "), std::string::npos) << said;
  return !outcome.said.empty();
}

TEST_P(TransferFaults, AreToldAndLeaveNothingUnaccountedFor) {
  const std::int64_t calls = run_with(GetParam(), {}).calls;
  ASSERT_GT(calls, 80);
  int told = 0;
  for (std::int64_t nth = 1; nth <= calls; ++nth) {
    for (const cuda::CUresult code : {cuda::result::out_of_memory, cuda::CUresult{999}}) {
      told += expect_told(GetParam(), {"*", nth, code, false}) ? 1 : 0;
    }
  }
  EXPECT_GT(told, calls / 2);  // of two for each call; others are cleanups, or have another way
}

// As the driver may answer any call with the failure of work that was enqueued before.
TEST_P(TransferFaults, OfEarlierWorkThatAnAcceptedCallIsAnsweredByAreToldToo) {
  const std::int64_t calls = run_with(GetParam(), {}).calls;
  int told = 0;
  for (std::int64_t nth = 1; nth <= calls; ++nth) {
    told += expect_told(GetParam(), {"*", nth, 999, true}) ? 1 : 0;
  }
  EXPECT_GT(told, calls / 4);
}

TEST_P(TransferFaults, OfAcceptedWorkAreToldAndItsMemoryIsHeld) {
  int told = 0;
  for (const char* call :
       {"cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync", "cuEventRecord", "cuStreamWaitEvent"}) {
    for (std::int64_t nth = 1; nth <= 12; ++nth) {
      for (const bool after : {false, true}) told += expect_told(GetParam(), {call, nth, 999, after}) ? 1 : 0;
    }
  }
  EXPECT_GT(told, 40);
}

TEST_P(TransferFaults, ThatStickAreNamed) {
  const std::int64_t calls = run_with(GetParam(), {}).calls;
  for (std::int64_t nth = 1; nth <= calls; nth += 3) {
    const Outcome outcome = run_with(GetParam(), {"*", nth, cuda::result::illegal_address, false});
    EXPECT_EQ(outcome.wrong, "") << nth;
    for (const std::string& said : outcome.said) {
      EXPECT_NE(said.find("an earlier operation on this device failed"), std::string::npos) << nth << " " << said;
    }
  }
}

TEST_P(TransferFaults, AtTheEndOfTheDriverAreToldAndCrashNothing) {
  const std::int64_t calls = run_with(GetParam(), {}).calls;
  int told = 0;
  for (std::int64_t nth = 1; nth <= calls; nth += 7) {
    WorldOptions options;
    options.schedule = GetParam();
    options.presets = {"two_devices"};
    TransferWorld world(options);
    Outcome outcome;
    AllTransfers transfers(world);
    cuda::test::forget_calls();
    cuda::test::fail("*", nth, cuda::result::deinitialized);
    transfers.run(outcome);
    told += outcome.said.empty() ? 0 : 1;
    for (const std::string& said : outcome.said)
      EXPECT_NE(said.find("the process is ending"), std::string::npos) << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Schedules, TransferFaults, ::testing::Values("lazy", "eager"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace ferry::test
