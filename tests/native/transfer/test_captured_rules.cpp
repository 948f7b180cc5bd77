// What copies in graphs must keep to, and that it is noticed when they do not.
#include "graph_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::fake;

struct Rule {
  const char* name;
  Mutation mutation;
  std::string (*run)(const char* schedule, std::uint32_t seed);
};

// Captures, drops what the framework and the caller have of it, and replays with new values.
template <class Drop>
std::string replay_after(const char* schedule, std::uint32_t seed, Drop drop) {
  Random random(seed);
  TransferWorld world({schedule, seed, {}, small_limits()});
  std::string said;
  {
    const CUstream stream = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {16, 16});
    DeviceTensor tensor = world.tensor(image, stream);
    HostTarget target = world.target(packed_image(random, DType::float32, {16, 16}));
    const TensorRef arrived = target.ref;
    begin_capture(stream);
    said += error_text([&] { capture(world, tensor, target); });
    const FrameworkGraph graph(stream);
    if (graph.answer() != 0) said += "the capture is destroyed\n";
    said += drop(world, tensor, target);
    if (graph.answer() == 0) said += replayed(world, graph, stream, arrived, image.ref, "a replay");
  }
  return said + world.end();
}

std::string source_is_held_by_the_graph(const char* schedule, std::uint32_t seed) {
  return replay_after(schedule, seed, [](TransferWorld&, DeviceTensor& tensor, HostTarget&) {
    tensor.owner.reset();
    return "";
  });
}

// Memory that only we used is lent again at once.
std::string lease_is_held_by_the_graph(const char* schedule, std::uint32_t seed) {
  return replay_after(schedule, seed, [](TransferWorld& world, DeviceTensor&, HostTarget& target) {
    const std::byte* const before = target.lease->data();
    target.lease.reset();
    Random random(1);
    const HostTarget other = world.target(packed_image(random, DType::float32, {16, 16}));
    return other.lease->data() == before ? "memory of the graph was lent to others\n" : "";
  });
}

std::string copies_outside_of_captures_are_refused(const char* schedule, std::uint32_t seed) {
  Random random(seed);
  TransferWorld world({schedule, seed, {}, small_limits()});
  std::string said;
  {
    const Strided image = packed_image(random, DType::float32, {16, 16});
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    const HostTarget target = world.target(image);
    if (error_text([&] { capture(world, tensor, target); }).empty()) said += "a copy was made outside of a capture\n";
    fake<void()>("fake_drain")();
  }
  return said + world.end();
}

std::string waits_are_refused_in_captures(const char* schedule, std::uint32_t seed) {
  TransferWorld world({schedule, seed, {}, small_limits()});
  const CUstream stream = world.made_stream();
  begin_capture(stream);
  std::string said;
  if (error_text([&] { end_of_work(world.transfers(), 0, stream)->wait(); }).empty())
    said += "a capture was waited for\n";
  {
    const FrameworkGraph graph(stream);
    if (graph.answer() != 0) said += "the capture is destroyed\n";
  }
  return said + world.end();
}

std::string wait_lasts_until_the_replay_is_done(const char* schedule, std::uint32_t seed) {
  return replay_after(schedule, seed, [](TransferWorld&, DeviceTensor&, HostTarget&) { return ""; });
}

class CapturedRules : public ::testing::TestWithParam<Rule> {};

TEST_P(CapturedRules, AreKept) {
  for (const char* schedule : every_schedule) {
    const std::uint32_t seeds = std::string(schedule) == "shuffled" ? 200 : 4;
    for (std::uint32_t seed = 0; seed < seeds; ++seed) {
      ASSERT_EQ(GetParam().run(schedule, seed), "") << schedule << " seed " << seed;
    }
  }
}

TEST_P(CapturedRules, AreNoticedWhereTheyAreSwitchedOff) {
  const Mutated mutated(GetParam().mutation);
  int noticed = 0;
  for (const char* schedule : every_schedule) {
    for (std::uint32_t seed = 0; seed < 10; ++seed) noticed += GetParam().run(schedule, seed).empty() ? 0 : 1;
  }
  EXPECT_GT(noticed, 0);
  RecordProperty("noticed", noticed);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, CapturedRules,
    ::testing::Values(
        Rule{"TheGraphHoldsTheSource", Mutation::release_source_early, source_is_held_by_the_graph},
        Rule{"TheGraphHoldsTheLease", Mutation::reuse_lease_early, lease_is_held_by_the_graph},
        Rule{"CopiesOutsideOfCapturesAreRefused", Mutation::ignore_capture, copies_outside_of_captures_are_refused},
        Rule{"WaitsInCapturesAreRefused", Mutation::ignore_capture, waits_are_refused_in_captures},
        Rule{"AWaitLastsUntilTheReplayIsDone", Mutation::skip_host_wait, wait_lasts_until_the_replay_is_done}),
    [](const auto& param) { return std::string(param.param.name); });

}  // namespace
}  // namespace ferry::test
