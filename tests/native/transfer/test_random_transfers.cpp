#include <chrono>
#include <cstdlib>
#include <iostream>
#include <set>

#include "random_transfers.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

std::uint32_t asked(const char* variable, std::uint32_t usual) {
  const char* text = std::getenv(variable);
  return text == nullptr ? usual : static_cast<std::uint32_t>(std::strtod(text, nullptr));
}

// tools/soak.py asks for more, for other ones, and for an end.
std::uint32_t seeds(std::uint32_t usual) { return asked("TENSORFERRY_SOAK_SEEDS", usual); }

void run_all(const char* schedule, std::uint32_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked("TENSORFERRY_SOAK_SECONDS", 1000000));
  const std::uint32_t first = asked("TENSORFERRY_SOAK_FIRST", 0);
  std::set<std::uint64_t> orders;
  std::uint32_t told = 0;
  for (; told < count && std::chrono::steady_clock::now() < end; ++told) {
    const std::uint32_t seed = first + told;
    std::uint64_t order = 0;
    ASSERT_EQ(random_transfers(schedule, seed, &order), "") << schedule << " seed " << seed;
    orders.insert(order);
  }
  ::testing::Test::RecordProperty("distinct_orders", static_cast<int>(orders.size()));
  std::cout << schedule << ": " << orders.size() << " distinct orders from " << told << " seeds\n";
}

TEST(RandomTransfers, AreRightWhenWorkRunsAsLateAsItMay) { run_all("lazy", seeds(300)); }
TEST(RandomTransfers, AreRightWhenWorkRunsAtOnce) { run_all("eager", seeds(200)); }
TEST(RandomTransfers, AreRightInRandomOrders) { run_all("shuffled", seeds(1000)); }
TEST(RandomTransfers, AreRightOnThreads) { run_all("threaded", seeds(60)); }

}  // namespace
}  // namespace ferry::test
