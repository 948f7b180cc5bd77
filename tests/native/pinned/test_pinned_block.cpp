#include <sys/mman.h>

#include <limits>
#include <new>
#include <thread>

#include "child.hpp"
#include "cuda/driver_error.hpp"
#include "cuda/host_range.hpp"
#include "pinned/pinned_block.hpp"
#include "pinned_fixture.hpp"

namespace ferry {
namespace {

using cuda::test::count_of;
using cuda::test::fail;
using cuda::test::live;
using test::OnRuntime;

constexpr std::size_t page = 4096;
constexpr std::size_t MiB = std::size_t{1} << 20;

TEST(PinnedBlockSizes, AreWholePages) {
  EXPECT_EQ(pinned_block_nbytes(0), page);
  EXPECT_EQ(pinned_block_nbytes(1), page);
  EXPECT_EQ(pinned_block_nbytes(page), page);
  EXPECT_EQ(pinned_block_nbytes(page + 1), 2 * page);
  EXPECT_EQ(pinned_block_nbytes(64 * MiB - page + 1), 64 * MiB);
}

TEST(PinnedBlockSizes, AreWholeHugePagesFrom64MiBOn) {
  EXPECT_EQ(pinned_block_nbytes(64 * MiB), 64 * MiB);
  EXPECT_EQ(pinned_block_nbytes(64 * MiB + 1), 66 * MiB);
}

TEST(PinnedBlockSizes, BeyondEveryAddressSpaceThrow) {
  EXPECT_THROW(static_cast<void>(pinned_block_nbytes(std::numeric_limits<std::size_t>::max())), std::bad_alloc);
}

class PinnedBlocks : public OnRuntime {
 protected:
  std::optional<PinnedBlock> make(std::size_t nbytes) { return PinnedBlock::make(scope(), nbytes); }
  cuda::HostRange range_of(const PinnedBlock& block) {
    return cuda::classify_host_range(scope(), block.data(), block.nbytes());
  }
  static void set_budget(std::uint64_t nbytes) { test::fake<void(std::uint64_t)>("fake_host_budget")(nbytes); }
};

TEST_F(PinnedBlocks, AreOneRegistrationOfExactlyTheirPages) {
  for (const std::size_t nbytes : {std::size_t{1}, 8 * page, 16 * page + 1, 3 * MiB}) {
    const auto block = make(nbytes);
    ASSERT_TRUE(block.has_value());
    EXPECT_EQ(block->nbytes(), (nbytes + page - 1) / page * page);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % page, 0U);
    EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(block->nbytes()));
    EXPECT_EQ(live("host_registrations"), 1);
    EXPECT_EQ(range_of(*block), cuda::HostRange::pinned);
    EXPECT_EQ(block->piece_nbytes(block->data(), block->nbytes()), block->nbytes());
    EXPECT_EQ(block->piece_nbytes(block->data() + 10, 5), 5U);
    EXPECT_TRUE(block->is_registered());
  }
  EXPECT_EQ(live("host_registrations"), 0);
}

TEST_F(PinnedBlocks, HaveTheirPagesInPlace) {
  const auto block = make(5 * MiB);
  std::vector<unsigned char> resident(block->nbytes() / page);
  ASSERT_EQ(::mincore(block->data(), block->nbytes(), resident.data()), 0);
  EXPECT_TRUE(std::all_of(resident.begin(), resident.end(), [](unsigned char byte) { return (byte & 1) != 0; }));
}

TEST_F(PinnedBlocks, AreUnregisteredBeforeTheyAreUnmapped) {
  std::byte* data = nullptr;
  {
    auto block = make(2 * page);
    data = block->data();
    const PinnedBlock moved(std::move(*block));
    EXPECT_EQ(moved.data(), data);
    EXPECT_EQ(live("host_registrations"), 1);
  }
  EXPECT_EQ(live("host_registrations"), 0);
  EXPECT_EQ(count_of("cuMemHostUnregister"), 1);
  unsigned char resident = 0;
  EXPECT_NE(::mincore(data, page, &resident), 0);  // that no page is mapped is the only error here
}

TEST_F(PinnedBlocks, ThatTheDriverRefusesAsOneAreRegisteredInHalves) {
  fail("cuMemHostRegister", 1, cuda::result::out_of_memory);
  const auto block = make(8 * MiB);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(live("host_registrations"), 2);
  EXPECT_EQ(block->piece_nbytes(block->data(), 8 * MiB), 4 * MiB);
  EXPECT_EQ(block->piece_nbytes(block->data() + 4 * MiB - 1, 8), 1U);
  EXPECT_EQ(block->piece_nbytes(block->data() + 4 * MiB, 4 * MiB), 4 * MiB);
  EXPECT_EQ(range_of(*block), cuda::HostRange::pinned_in_parts);
}

TEST_F(PinnedBlocks, HaveHalvesOfHalvesWhereEvenHalvesAreRefused) {
  for (const std::int64_t nth : {1, 2, 5}) fail("cuMemHostRegister", nth, cuda::result::invalid_value);
  const auto block = make(8 * MiB);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(live("host_registrations"), 4);  // whole no, half no, quarter, quarter, half no, quarter, quarter
  std::size_t covered = 0;
  while (covered < block->nbytes()) {
    const std::size_t piece = block->piece_nbytes(block->data() + covered, block->nbytes() - covered);
    ASSERT_EQ(piece, 2 * MiB);
    covered += piece;
  }
  EXPECT_EQ(count_of("cuMemHostAlloc"), 0);
}

TEST_F(PinnedBlocks, TakeCopiesOfWholePieces) {
  fail("cuMemHostRegister", 1, cuda::result::out_of_memory);
  const auto block = make(MiB);
  const cuda::CUdeviceptr source = test::device_memory_of(0x11, MiB);
  const auto copy_in_pieces = [&] {
    int worst = 0;
    for (std::size_t at = 0; at < MiB;) {
      const std::size_t piece = block->piece_nbytes(block->data() + at, MiB - at);
      worst = std::max(worst, test::copies_to_host(block->data() + at, source + at, piece, unknown_stream()));
      at += piece;
    }
    return worst;
  };
  EXPECT_EQ(copy_in_pieces(), 0);
  test::drain();
  EXPECT_EQ(block->data()[MiB - 1], std::byte{0x11});
  {
    const test::Mutated mutated(Mutation::ignore_registration_edge);
    EXPECT_NE(copy_in_pieces(), 0);
  }
  test::fake<void()>("fake_clear_violations")();
}

TEST_F(PinnedBlocks, KnowNoPieceOutsideOfThem) {
  const auto block = make(page);
  EXPECT_EQ(block->piece_nbytes(block->data() + page, 1), 0U);
  EXPECT_EQ(block->piece_nbytes(block->data() - 1, 1), 0U);
}

struct Refusal {
  const char* name;
  cuda::CUresult code;
};

class RefusedRegistrations : public PinnedBlocks, public ::testing::WithParamInterface<Refusal> {};

TEST_P(RefusedRegistrations, AreReplacedByMemoryOfTheDriver) {
  fail("cuMemHostRegister", 0, GetParam().code);
  const auto block = make(3 * MiB);
  ASSERT_TRUE(block.has_value());
  EXPECT_EQ(count_of("cuMemHostAlloc"), 1);
  EXPECT_EQ(block->nbytes(), 3 * MiB);
  EXPECT_EQ(range_of(*block), cuda::HostRange::pinned);
  EXPECT_EQ(block->piece_nbytes(block->data() + 1, 3 * MiB), 3 * MiB - 1);
  std::memset(block->data(), 1, block->nbytes());
  EXPECT_EQ(live("host_bytes"), static_cast<std::int64_t>(3 * MiB));
}

TEST_P(RefusedRegistrations, LeaveNothingWhereTheDriverHasNoMemoryEither) {
  fail("cuMemHostRegister", 0, GetParam().code);
  fail("cuMemHostAlloc", 0, GetParam().code);
  EXPECT_FALSE(make(3 * MiB).has_value());
  EXPECT_EQ(live("host_bytes"), 0);
}

INSTANTIATE_TEST_SUITE_P(, RefusedRegistrations,
                         ::testing::Values(Refusal{"InvalidRange", 1}, Refusal{"OutOfMemory", 2},
                                           Refusal{"AlreadyRegistered", 712}, Refusal{"NotPermitted", 800},
                                           Refusal{"NotSupported", 801}),
                         [](const auto& refusal) { return std::string(refusal.param.name); });

TEST_F(PinnedBlocks, AreNothingBeyondTheBudgetOfLockedMemory) {
  set_budget(2 * MiB);
  EXPECT_FALSE(make(3 * MiB).has_value());
  EXPECT_EQ(live("host_bytes"), 0);
  EXPECT_TRUE(make(2 * MiB).has_value());
}

TEST_F(PinnedBlocks, ThrowFailuresOfTheDeviceAndLeaveNothing) {
  fail("cuMemHostRegister", 1, 999);
  EXPECT_NE(cuda::test::error_of([&] { static_cast<void>(make(page)); }).find("cuMemHostRegister"), std::string::npos);
  fail("cuMemHostRegister", 1, 801);
  fail("cuMemHostAlloc", 1, 999);
  EXPECT_NE(cuda::test::error_of([&] { static_cast<void>(make(page)); }).find("cuMemHostAlloc"), std::string::npos);
  EXPECT_EQ(live("host_bytes"), 0);
}

TEST_F(PinnedBlocks, LeaveNothingWhenACallThatWorkedReportsAFailure) {
  for (const cuda::CUresult code : {cuda::result::out_of_memory, cuda::CUresult{999}}) {
    for (const char* call : {"cuMemHostRegister", "cuMemHostAlloc"}) {
      if (call == std::string("cuMemHostAlloc")) fail("cuMemHostRegister", 1, 801);
      fail(call, 1, code, true);
      const std::string said = cuda::test::error_of([&] { static_cast<void>(make(32 * page)); });
      EXPECT_EQ(said == "nothing", code == cuda::result::out_of_memory) << call;
      EXPECT_EQ(live("host_registrations"), 0) << call << " " << code;
      cuda::test::clear_faults();
    }
  }
}

TEST_F(PinnedBlocks, ThatCannotBeUnregisteredStayMapped) {
  std::byte* data = nullptr;
  const std::uint64_t before = cuda::cleanup_report().failures;
  {
    const auto block = make(page);
    data = block->data();
    fail("cuMemHostUnregister", 1, 999);
  }
  EXPECT_EQ(cuda::cleanup_report().failures, before + 1);
  *data = std::byte{1};
  EXPECT_EQ(functions().cuMemHostUnregister(data), cuda::success);  // for the next test
}

TEST_F(PinnedBlocks, ThatMayBeRegisteredStillStayMapped) {
  std::byte* data = nullptr;
  {
    const auto block = make(page);
    data = block->data();
    fail("cuCtxGetId", 1, 999);
  }
  *data = std::byte{1};
  EXPECT_EQ(functions().cuMemHostUnregister(data), cuda::success);  // for the next test
}

TEST_F(PinnedBlocks, AreOrdinaryMemoryAfterAReset) {
  const auto block = make(page);
  cuda::test::reset_device(0);
  EXPECT_FALSE(block->is_registered());
  *block->data() = std::byte{1};
  cuda::test::forget_calls();
}

TEST_F(PinnedBlocks, StayReadableInAForkedChildThatCallsNothing) {
  auto block = std::make_unique<PinnedBlock>(*make(3 * page));
  std::memset(block->data(), 42, block->nbytes());
  const std::byte* const data = block->data();
  EXPECT_EQ(cuda::test::in_child([&] {
              cuda::test::forget_calls();
              block.reset();
              const bool readable = data[0] == std::byte{42} && data[3 * page - 1] == std::byte{42};
              return std::to_string(cuda::test::calls().size()) + (readable ? " calls, readable" : " calls, gone");
            }),
            "0 calls, readable");
  EXPECT_EQ(live("host_registrations"), 1);
}

TEST_F(PinnedBlocks, MayDieInAThreadWithoutAContext) {
  auto registered = make(page);
  fail("cuMemHostRegister", 1, 801);
  auto of_the_driver = make(page);
  std::thread([&] {
    registered.reset();
    of_the_driver.reset();
  }).join();
  EXPECT_EQ(live("host_bytes"), 0);
  EXPECT_EQ(live("pushed_contexts"), 0);
}

class RandomRefusals : public PinnedBlocks {
 protected:
  void SetUp() override { begin({"register_random_failure"}); }
};

TEST_F(RandomRefusals, StillGiveMemoryThatIsCoveredByItsPieces) {
  for (int i = 0; i < 30; ++i) {
    const auto block = make(4 * MiB);
    ASSERT_TRUE(block.has_value());
    std::size_t covered = 0;
    while (covered < block->nbytes()) {
      const std::size_t piece = block->piece_nbytes(block->data() + covered, block->nbytes() - covered);
      ASSERT_GT(piece, 0U);
      EXPECT_EQ(cuda::classify_host_range(scope(), block->data() + covered, piece), cuda::HostRange::pinned);
      covered += piece;
    }
  }
}

}  // namespace
}  // namespace ferry
