// Copies past the caches, against memcpy's result.
#include <cstring>
#include <vector>

#include "guarded.hpp"
#include "kernel_level.hpp"

namespace ferry {
namespace {

using test::Random;

class KernelStream : public test::KernelTest {};
FERRY_FOR_EACH_LEVEL(KernelStream);

TEST_P(KernelStream, CopiesEveryByteFromAndToAnyAddressAndNoOther) {
  Random random(41);
  for (std::int64_t nbytes = 0; nbytes <= 400; ++nbytes) {
    for (int round = 0; round < 12; ++round) {
      const std::int64_t to = random.between(0, 127);
      const std::int64_t from = random.between(0, 127);
      std::vector<std::byte> source(640);
      for (std::byte& byte : source) byte = static_cast<std::byte>(random.bits());
      std::vector<std::byte> result(640);
      for (std::byte& byte : result) byte = static_cast<std::byte>(random.bits());
      std::vector<std::byte> expected = result;
      std::memcpy(expected.data() + to, source.data() + from, static_cast<std::size_t>(nbytes));
      level().stream_copy(result.data() + to, source.data() + from, nbytes);
      stream_fence();
      ASSERT_EQ(result, expected) << nbytes << " bytes from offset " << from << " to offset " << to;
    }
  }
}

}  // namespace
}  // namespace ferry
