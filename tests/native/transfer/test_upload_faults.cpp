// Every call of the driver fails in turn while kernels unpack: the upload says so, nothing is left that is not
// accounted for, and the next one works.
#include <sstream>

#include "cuda/driver_error.hpp"
#include "transfer/abandoned.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

struct Outcome {
  std::string wrong;
  std::vector<std::string> said;
  std::uint64_t accounted = 0;
  std::string end;
  std::int64_t calls = 0;
};

// A scattered tensor, in parts and through turns in staging, or directly out of pinned memory; and one copy into a
// block.
void run_all(TransferWorld& world, CUstream stream, Outcome& outcome) {
  Random random(1);
  for (const int way : {0, 1, 2}) {
    Strided image = packed_image(random, DType::float32, {40, 240});
    if (way < 2) image.ref.layout = {{40, 120}, {960, 8}, 4};
    const Strided like = packed_image(random, DType::float32, image.ref.layout.shape);
    const DeviceTensor tensor = world.tensor(image, stream, 1);
    HostTarget source{like.ref, nullptr, nullptr, {}};
    const std::string said = error_text([&] {
      if (way > 0) source = world.target(like, 1);
      const HostMemory where = way > 0 ? HostMemory::pinned : HostMemory::ordinary;
      const auto pending = world.transfers().upload(tensor, source, where);
      if (!pending) return;  // its library does it
      pending->wait();
      outcome.wrong += difference(values_on_device(tensor, image), values_of(like.ref), "an upload");
    });
    if (!said.empty()) outcome.said.push_back(said);
  }
}

Outcome run_with(const char* schedule, std::int64_t nth, cuda::CUresult code, bool after) {
  WorldOptions options{schedule, 0, {"two_devices"}, small_limits()};
  options.limits.kernels = true;
  options.limits.staging_nbytes = 20 << 10;
  Outcome outcome;
  TransferWorld world(options);
  const std::uint64_t before = abandoned_holds() + cuda::cleanup_report().failures;
  const CUstream stream = world.made_stream(1, 1);
  cuda::test::forget_calls();
  if (nth > 0) cuda::test::fail("*", nth, code, after);
  run_all(world, stream, outcome);
  outcome.calls = static_cast<std::int64_t>(cuda::test::calls().size());
  cuda::test::clear_faults();
  Outcome again;
  run_all(world, stream, again);
  for (const std::string& said : again.said) outcome.wrong += "afterwards: " + said + "\n";
  outcome.wrong += again.wrong;
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

class UploadFaults : public ::testing::TestWithParam<const char*> {};

TEST_P(UploadFaults, AreToldAndLeaveNothingUnaccountedFor) {
  const Outcome none = run_with(GetParam(), 0, 0, false);
  EXPECT_EQ(none.wrong + none.end, "");
  EXPECT_EQ(none.said, std::vector<std::string>{});
  ASSERT_GT(none.calls, 60);
  int told = 0;
  for (std::int64_t nth = 1; nth <= none.calls; ++nth) {
    for (const auto& [code, after] : {std::pair{cuda::result::out_of_memory, false},
                                      std::pair{cuda::CUresult{999}, false}, std::pair{cuda::CUresult{999}, true}}) {
      const Outcome outcome = run_with(GetParam(), nth, code, after);
      const std::string name = "call " + std::to_string(nth) + " answered " + std::to_string(code);
      EXPECT_EQ(outcome.wrong, "") << name << (after ? " after acceptance" : "");
      EXPECT_TRUE(only_leftovers(outcome.end)) << name << "\n" << outcome.end;
      if (outcome.accounted == 0) {
        EXPECT_EQ(outcome.end, "") << name;
      }
      told += outcome.said.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(told, none.calls);
}

INSTANTIATE_TEST_SUITE_P(Schedules, UploadFaults, ::testing::Values("lazy", "eager"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace ferry::test
