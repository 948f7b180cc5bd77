// Parts that kernels pack: together they are the tensor, each has room, and neighbours are neighbours on the host.
#include <map>

#include "../support.hpp"
#include "transfer/pack_chunks.hpp"

namespace ferry::test {
namespace {

constexpr std::uint32_t seeds = 2000;

// Where each element of the host tensor comes from on the device, by the definition of the layouts.
std::map<std::int64_t, std::int64_t> pairs_of(const Layout& host, const Layout& device) {
  std::map<std::int64_t, std::int64_t> pairs;
  for (std::int64_t flat = 0; flat < element_count(host.shape).value(); ++flat) {
    pairs[offset_of(host, flat)] = offset_of(device, flat);
  }
  return pairs;
}

// The same, by way of the packed bytes of each part.
std::map<std::int64_t, std::int64_t> pairs_through(const std::vector<PackChunk>& chunks) {
  std::map<std::int64_t, std::int64_t> pairs;
  for (const PackChunk& chunk : chunks) {
    std::map<std::int64_t, std::int64_t> packed;
    for (std::int64_t flat = 0; flat < element_count(chunk.packed.shape).value(); ++flat) {
      packed[offset_of(chunk.packed, flat)] = chunk.device_offset + offset_of(chunk.device, flat);
    }
    EXPECT_EQ(static_cast<std::int64_t>(packed.size()) * chunk.packed.itemsize, chunk.nbytes);
    EXPECT_EQ(packed.rbegin()->first + chunk.packed.itemsize, chunk.nbytes) << "there are holes";
    for (std::int64_t flat = 0; flat < element_count(chunk.host.shape).value(); ++flat) {
      const auto [at, is_new] =
          pairs.emplace(chunk.host_offset + offset_of(chunk.host, flat), packed.at(offset_of(chunk.landing, flat)));
      EXPECT_TRUE(is_new) << "an element comes twice";
    }
  }
  return pairs;
}

TEST(PackChunks, AreTheTensorWhateverTheLayouts) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 4)));
    Layout device = random_strided(random, DType::float32, shape).ref.layout;
    const Layout host = random_strided(random, DType::float16, shape).ref.layout;
    if (shape.size() > 0 && random.between(0, 3) == 0) {
      device.strides[static_cast<int>(random.between(0, shape.size() - 1))] = 0;
    }
    const std::int64_t most = random.between(1, 60);
    for (const Repeated repeated : {Repeated::once, Repeated::each}) {
      const auto chunks = pack_chunks(device, host, 2, most, repeated);
      ASSERT_EQ(pairs_through(chunks), pairs_of(host, device)) << "seed " << seed;
      for (const PackChunk& chunk : chunks) {
        ASSERT_TRUE(chunk.nbytes <= most || chunk.nbytes == 2) << "seed " << seed;
      }
    }
  }
}

TEST(PackChunks, FollowOneAnotherInAPackedDestination) {
  const Layout host{{64, 8, 4}, {128, 16, 4}, 4};
  const Layout device{{64, 8, 4}, {4, 4096, 512}, 4};
  std::int64_t end = 0;
  for (const PackChunk& chunk : pack_chunks(device, host, 4, 1000, Repeated::each)) {
    EXPECT_EQ(chunk.host_offset, end);
    EXPECT_TRUE(is_c_contiguous(chunk.host));
    end += chunk.nbytes;
  }
  EXPECT_EQ(end, 64 * 8 * 4 * 4);
}

TEST(PackChunks, BringRepeatedElementsOnce) {
  const Layout device{{1000, 4}, {0, 8}, 4};
  const Layout host{{1000, 4}, {16, 4}, 4};
  EXPECT_EQ(pack_chunks(device, host, 4, 1 << 20, Repeated::once).front().nbytes, 16);
  EXPECT_EQ(pack_chunks(device, host, 4, 1 << 20, Repeated::each).front().nbytes, 16'000);
}

TEST(PackChunks, AreNoneOfNothing) {
  const Layout empty{{0, 3}, {12, 4}, 4};
  EXPECT_TRUE(pack_chunks(empty, empty, 4, 100, Repeated::each).empty());
}

}  // namespace
}  // namespace ferry::test
