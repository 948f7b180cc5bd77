// What a reader takes from a ring of slots that somebody goes on filling.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "transfer/replay_reader.hpp"

namespace ferry {
namespace {

constexpr std::size_t words = 32;

// Fills slots as the kernel does: the number, the payload (each word is the number), the number again.
class Ring {
 public:
  explicit Ring(std::uint64_t slots) : slots_(slots), headers_(2 * slots), payloads_(words * slots) {}

  [[nodiscard]] ReplaySlots slots() noexcept {
    return {reinterpret_cast<std::byte*>(headers_.data()), reinterpret_cast<std::byte*>(payloads_.data()),
            words * sizeof(std::uint64_t), slots_};
  }
  void begin(std::uint64_t number) {
    store(headers_[2 * slot(number)], number);  // release stores of the payload come behind it
  }
  void fill(std::uint64_t number, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) store(payloads_[words * slot(number) + i], number);
  }
  void end(std::uint64_t number) { store(headers_[2 * slot(number) + 1], number); }
  void replay(std::uint64_t number) {
    begin(number);
    fill(number, 0, words);
    end(number);
  }

 private:
  [[nodiscard]] std::size_t slot(std::uint64_t number) const { return static_cast<std::size_t>((number - 1) % slots_); }
  static void store(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }

  std::uint64_t slots_;
  std::vector<std::uint64_t> headers_;
  std::vector<std::uint64_t> payloads_;
};

struct Reading {
  std::uint64_t number = 0;
  std::array<std::uint64_t, words> values{};

  [[nodiscard]] bool is_whole() const {
    return std::all_of(values.begin(), values.end(), [&](std::uint64_t value) { return value == number; });
  }
};

Reading taken_by(ReplayReader& reader) {
  Reading reading;
  reading.number = reader.take(std::as_writable_bytes(std::span(reading.values)));
  return reading;
}

TEST(ReplayReader, TakesEachReplayOnceInOrder) {
  Ring ring(4);
  ReplayReader reader(ring.slots());
  EXPECT_FALSE(reader.has_next());
  for (std::uint64_t number = 1; number < 20; number += 2) {
    ring.replay(number);
    ring.replay(number + 1);
    EXPECT_TRUE(reader.has_next());
    for (const std::uint64_t wanted : {number, number + 1}) {
      const Reading reading = taken_by(reader);
      EXPECT_EQ(reading.number, wanted);
      EXPECT_TRUE(reading.is_whole());
    }
    EXPECT_EQ(taken_by(reader).number, 0U);
  }
  EXPECT_EQ(reader.gaps(), 0U);
}

TEST(ReplayReader, DoesNotTakeWhatIsBeingFilled) {
  Ring ring(4);
  ReplayReader reader(ring.slots());
  ring.begin(1);
  EXPECT_FALSE(reader.has_next());
  ring.fill(1, 0, words);
  EXPECT_EQ(taken_by(reader).number, 0U);
  ring.end(1);
  EXPECT_EQ(taken_by(reader).number, 1U);
  EXPECT_EQ(reader.gaps(), 0U);
}

TEST(ReplayReader, CountsWhatWasOverwrittenAndGoesOnWithTheOldestThatIsLeft) {
  Ring ring(4);
  ReplayReader reader(ring.slots());
  for (std::uint64_t number = 1; number <= 11; ++number) ring.replay(number);
  for (const std::uint64_t wanted : {8U, 9U, 10U, 11U, 0U}) EXPECT_EQ(taken_by(reader).number, wanted);
  EXPECT_EQ(reader.gaps(), 7U);
}

TEST(ReplayReader, DoesNotTakeASlotThatTheNextLapHasBegunToOverwrite) {
  Ring ring(2);
  ReplayReader reader(ring.slots());
  ring.replay(1);
  ring.replay(2);
  ring.begin(3);
  ring.fill(3, 0, words / 2);
  EXPECT_EQ(taken_by(reader).number, 2U);
  EXPECT_EQ(reader.gaps(), 1U);
  ring.fill(3, words / 2, words);
  ring.end(3);
  EXPECT_EQ(taken_by(reader).number, 3U);
}

TEST(ReplayReader, BytesBehindTheLastWholeWordArrive) {
  Ring ring(1);
  ReplayReader reader(ring.slots());
  ring.replay(1);
  std::array<std::byte, 13> values{};
  values.back() = std::byte{7};
  EXPECT_EQ(reader.take(std::span(values).first<12>()), 1U);
  const std::array<std::uint32_t, 3> wanted{1, 0, 1};
  EXPECT_EQ(std::memcmp(values.data(), wanted.data(), sizeof wanted), 0);
  EXPECT_EQ(values.back(), std::byte{7});
}

TEST(ReplayReader, NeverTakesATornReplayBesideAWriterThatDoesNotWait) {
  constexpr std::uint64_t replays = 100'000;
  Ring ring(3);
  ReplayReader reader(ring.slots());
  std::thread writer([&ring] {
    for (std::uint64_t number = 1; number <= replays; ++number) ring.replay(number);
  });
  std::uint64_t last = 0;
  std::uint64_t taken = 0;
  while (last < replays) {
    const Reading reading = taken_by(reader);
    if (reading.number == 0) continue;
    EXPECT_TRUE(reading.is_whole()) << "replay " << reading.number;
    EXPECT_GT(reading.number, last);
    last = reading.number;
    ++taken;
  }
  writer.join();
  EXPECT_EQ(taken + reader.gaps(), replays);
}

}  // namespace
}  // namespace ferry
