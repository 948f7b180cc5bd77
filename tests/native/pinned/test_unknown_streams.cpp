// Fences while it is not known in which streams others work on a device.
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::CUstream;
using cuda::test::count_of;
using test::OnRuntime;

constexpr std::size_t MiB = std::size_t{1} << 20;

// Two devices in use; pinned memory is leased in a context of the first one.
class UnknownStreams : public OnRuntime {
 protected:
  void SetUp() override {
    OnRuntime::begin({"two_devices"});
    cuda::test::use_device(1);
    second_ = streams_.emplace_back(test::made_stream());
    cuda::test::use_device(0);
    runtime_->foreign().must_be_known();
    runtime_->add_foreign_streams(0, {unknown_stream()});
  }

  // Is memory that the second device will write to lent before it has? Nothing but a query or a wait moves its work.
  bool is_lent_early() {
    const auto made = pool();
    auto given = exposed(lease(*made, MiB));
    const std::byte* const data = given->data();
    cuda::test::use_device(1);
    EXPECT_EQ(test::copies_to_host(given->data(), test::device_memory(MiB, 1), MiB, second_), 0);
    cuda::test::use_device(0);
    given.reset();
    const auto early = lent_again(*made);
    const bool is_early = early->data() == data;
    runtime_->add_foreign_streams(1, {second_});
    const auto late = lent_again(*made);
    EXPECT_TRUE(is_early || late->data() == data);
    test::fill(*early, 0x22);
    test::fill(*late, 0x22);
    test::drain();
    EXPECT_TRUE(test::holds(*late, 0x22));
    EXPECT_EQ(test::holds(*early, 0x22), !is_early);
    return is_early;
  }

  // What is lent once the fences of now have had time to pass.
  std::shared_ptr<PinnedLease> lent_again(PinnedPool& pool) {
    test::close_epoch(pool, scope());
    for (int polls = 0; polls < 50; ++polls) pool.poll();
    return lease(pool, MiB);
  }

  CUstream second_ = nullptr;
};

TEST_F(UnknownStreams, MemoryIsNotLentBeforeTheyAreKnownAndHavePassed) { EXPECT_FALSE(is_lent_early()); }

TEST_F(UnknownStreams, WithoutThatRuleTheMemoryIsLentTooEarly) {
  const test::Mutated mutated(Mutation::fence_before_known);
  EXPECT_TRUE(is_lent_early());
}

TEST_F(UnknownStreams, AreWantedUntilTheyWereAdded) {
  const auto made = pool();
  EXPECT_FALSE(runtime_->foreign().wanted());
  exposed(lease(*made, MiB)).reset();
  cuda::test::forget_calls();
  test::close_epoch(*made, scope());
  EXPECT_EQ(count_of("cuEventRecord"), 0);
  EXPECT_TRUE(runtime_->foreign().wanted());
  EXPECT_TRUE(runtime_->add_foreign_streams(1, {second_}));
  EXPECT_FALSE(runtime_->foreign().wanted());
  test::close_epoch(*made, scope());
  EXPECT_EQ(count_of("cuEventRecord"), 4);
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

TEST_F(UnknownStreams, ALibraryThatHadNotBegunWhenMemoryCameBackDidNotTouchIt) {
  const auto made = pool();
  const std::uint64_t before = runtime_->foreign().tick();
  exposed(lease(*made, MiB)).reset();
  runtime_->foreign().had_not_begun(before);  // it may have begun since
  test::close_epoch(*made, scope());
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 0U);
  runtime_->foreign().had_not_begun(runtime_->foreign().tick());
  test::close_epoch(*made, scope());
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

TEST_F(UnknownStreams, AnOlderAnswerTakesNothingBack) {
  const auto made = pool();
  const std::uint64_t before = runtime_->foreign().tick();
  exposed(lease(*made, MiB)).reset();
  runtime_->foreign().had_not_begun(runtime_->foreign().tick());
  runtime_->foreign().had_not_begun(before);
  test::close_epoch(*made, scope());
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

TEST_F(UnknownStreams, OfADeviceThatNobodyUsesAreNotNeeded) {
  OnRuntime::TearDown();
  OnRuntime::begin({"two_devices"});
  runtime_->foreign().must_be_known();
  EXPECT_FALSE(runtime_->add_foreign_streams(1, {}));
  EXPECT_TRUE(runtime_->add_foreign_streams(0, {}));
  const auto made = pool();
  exposed(lease(*made, MiB)).reset();
  test::close_epoch(*made, scope());
  poll_often(*made);
  EXPECT_EQ(made->stats().epochs, 1U);
}

}  // namespace
}  // namespace ferry
