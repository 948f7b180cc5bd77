// Which way a tensor takes to a device: the table of defaults row by row, laws, and what the two ends tell.
#include <map>
#include <string>
#include <vector>

#include "../support.hpp"
#include "transfer/upload_choice.hpp"

namespace ferry::test {
namespace {

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

UploadFacts block(std::int64_t nbytes) {
  UploadFacts facts;
  facts.nbytes = nbytes;
  facts.has_kernels = true;
  return facts;
}

UploadFacts pinned(UploadFacts facts) {
  facts.is_pinned = true;
  return facts;
}

UploadFacts widened(UploadFacts facts) {
  facts.casts_on_device = true;
  facts.same_order = false;
  return facts;
}

UploadFacts reordered(UploadFacts facts) {
  facts.same_order = false;
  return facts;
}

UploadFacts packed_by_the_host(UploadFacts facts) {
  facts.needs_no_host = false;
  return facts;
}

UploadFacts scattered(UploadFacts facts) {
  facts.is_block = facts.same_order = false;
  return facts;
}

UploadFacts in_rows(UploadFacts facts) {
  facts.is_block = false;
  facts.rows_pay = true;
  return facts;
}

UploadFacts without_kernels(UploadFacts facts) {
  facts.has_kernels = facts.casts_on_device = false;
  return facts;
}

UploadFacts unfit_for_kernels(UploadFacts facts) {
  facts.kernels_fit = false;
  return facts;
}

struct Row {
  const char* name;
  UploadFacts facts;
  UploadPath path;
};

const std::vector<Row>& table() {
  static const std::vector<Row> all{
      {"NothingAtAll", block(0), UploadPath::nothing},
      {"Block", block(64 * mib), UploadPath::ring},
      {"BlockThatTheHostPacks", packed_by_the_host(block(mib)), UploadPath::ring},
      {"SmallWidened", widened(block(64 * kib - 1)), UploadPath::ring},
      {"Widened", widened(block(64 * kib)), UploadPath::unpack},
      {"SmallTransposed", reordered(block(64 * kib - 1)), UploadPath::ring},
      {"Transposed", reordered(block(64 * kib)), UploadPath::unpack},
      {"Scattered", scattered(block(4)), UploadPath::unpack},
      {"LargeScattered", scattered(block(4096 * mib)), UploadPath::unpack},
      {"WideRows", in_rows(block(mib)), UploadPath::ring},
      {"WideRowsTransposed", reordered(in_rows(block(mib))), UploadPath::unpack},
      {"SmallPinned", pinned(block(mib - 1)), UploadPath::ring},
      {"Pinned", pinned(block(mib)), UploadPath::direct_unpack},
      {"PinnedThatFillsStaging", pinned(block(64 * mib)), UploadPath::direct_unpack},
      {"PinnedLargerThanTheRing", pinned(block(64 * mib + 1)), UploadPath::direct},
      {"PinnedThatTheHostPacks", pinned(packed_by_the_host(block(mib))), UploadPath::ring},
      {"PinnedWidened", pinned(widened(block(mib))), UploadPath::direct_unpack},
      {"PinnedWidenedLargerThanStaging", pinned(widened(block(65 * mib))), UploadPath::unpack},
      {"PinnedToAScatteredOne", pinned(scattered(block(mib))), UploadPath::direct_unpack},
      {"SmallPinnedToAScatteredOne", pinned(scattered(block(kib))), UploadPath::unpack},
      {"BlockWithoutKernels", without_kernels(block(mib)), UploadPath::ring},
      {"TransposedWithoutKernels", without_kernels(reordered(block(mib))), UploadPath::ring},
      {"PinnedWithoutKernels", without_kernels(pinned(block(mib))), UploadPath::ring},
      {"LargePinnedWithoutKernels", without_kernels(pinned(block(65 * mib))), UploadPath::direct},
      {"ScatteredWithoutKernels", without_kernels(scattered(block(4))), UploadPath::producer_unpack},
      {"WideRowsWithoutKernels", without_kernels(in_rows(block(mib))), UploadPath::producer_unpack},
      {"ScatteredThatNoKernelTakes", unfit_for_kernels(scattered(block(4))), UploadPath::producer_unpack},
  };
  return all;
}

class Uploads : public ::testing::TestWithParam<Row> {};

TEST_P(Uploads, GoTheWayOfTheTable) { EXPECT_EQ(choose_upload(GetParam().facts, {}), GetParam().path); }

INSTANTIATE_TEST_SUITE_P(Table, Uploads, ::testing::ValuesIn(table()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(UploadChoice, LeavesOutTheRingForPinnedMemoryOnly) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const auto coin = [&random] { return random.between(0, 1) == 0; };
    UploadFacts facts = block(std::int64_t{1} << random.between(0, 34));
    facts.is_pinned = coin();
    facts.needs_no_host = coin();
    facts.same_order = coin();
    facts.is_block = coin();
    facts.rows_pay = !facts.is_block && coin();
    facts.has_kernels = coin();
    const UploadPath path = choose_upload(facts, {});
    const bool directly = path == UploadPath::direct || path == UploadPath::direct_unpack;
    ASSERT_TRUE(!directly || (facts.is_pinned && facts.needs_no_host)) << "seed " << seed;
    const bool unpacks = path == UploadPath::unpack || path == UploadPath::direct_unpack;
    ASSERT_TRUE(!unpacks || facts.has_kernels) << "seed " << seed;
    ASSERT_TRUE(path != UploadPath::direct || facts.same_order) << "seed " << seed;
  }
}

TensorRef described(DType dtype, const Extents& shape, const Extents& strides) {
  return tensor(nullptr, dtype, shape, strides);
}

TEST(UploadFacts, BringTheNarrowerElementsOverTheLink) {
  const TensorRef device = described(DType::float32, {64, 64}, {256, 4});
  const TensorRef bytes = described(DType::uint8, {64, 64}, {64, 1});
  const TensorRef doubles = described(DType::float64, {64, 64}, {512, 8});
  const UploadFacts widened = upload_facts(device, bytes, {});
  EXPECT_TRUE(widened.casts_on_device && widened.needs_no_host);
  EXPECT_EQ(widened.dtype, DType::uint8);
  EXPECT_EQ(widened.nbytes, 64 * 64);
  const UploadFacts narrowed = upload_facts(device, doubles, {});
  EXPECT_FALSE(narrowed.casts_on_device || narrowed.needs_no_host);
  EXPECT_EQ(narrowed.nbytes, 64 * 64 * 4);
}

TEST(UploadFacts, LeaveMarksAndOtherByteOrdersToTheHost) {
  const TensorRef device = described(DType::complex128, {64}, {16});
  TensorRef source = described(DType::complex64, {64}, {8});
  source.conjugated = true;
  EXPECT_FALSE(upload_facts(device, source, {}).casts_on_device);
  source.conjugated = false;
  source.byte_swapped = true;
  const UploadFacts swapped = upload_facts(device, source, {});
  EXPECT_TRUE(swapped.casts_on_device);
  EXPECT_FALSE(swapped.needs_no_host);
}

TEST(UploadFacts, TellBlocksRowsAndOrders) {
  const TensorRef device = described(DType::float32, {2048, 2048}, {8192, 4});
  const UploadFacts same = upload_facts(device, device, {});
  EXPECT_TRUE(same.is_block && same.same_order && same.needs_no_host);
  const UploadFacts turned = upload_facts(device, described(DType::float32, {2048, 2048}, {4, 8192}), {});
  EXPECT_TRUE(turned.is_block && turned.needs_no_host && !turned.same_order);
  const UploadFacts rows = upload_facts(described(DType::float32, {8, 2048}, {16384, 4}), device, {});
  EXPECT_TRUE(rows.rows_pay && !rows.is_block);
  const UploadFacts gaps = upload_facts(described(DType::float32, {8, 2048}, {16384, 8}), device, {});
  EXPECT_TRUE(!gaps.rows_pay && !gaps.is_block && gaps.kernels_fit);
}

TEST(UploadFacts, CountRepeatedElementsOnce) {
  const TensorRef device = described(DType::float32, {1000, 16}, {64, 4});
  EXPECT_EQ(upload_facts(device, described(DType::float32, {1000, 16}, {0, 4}), {}).nbytes, 64);
}

// Where each element on the device comes from in host memory, by way of the packed bytes of each part.
TEST(UnpackChunks, AreTheTensorWhateverTheLayouts) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Extents shape = random_shape(random, static_cast<int>(random.between(0, 4)));
    Layout host = random_strided(random, DType::float32, shape).ref.layout;
    const Layout device = random_strided(random, DType::float16, shape).ref.layout;
    if (shape.size() > 0 && random.between(0, 3) == 0) {
      host.strides[static_cast<int>(random.between(0, shape.size() - 1))] = 0;
    }
    std::map<std::int64_t, std::int64_t> wanted;
    for (std::int64_t flat = 0; flat < element_count(shape).value(); ++flat) {
      wanted[offset_of(device, flat)] = offset_of(host, flat);
    }
    std::map<std::int64_t, std::int64_t> got;
    const std::int64_t most = random.between(1, 60);
    for (const UnpackChunk& chunk : unpack_chunks(host, device, 2, most)) {
      ASSERT_TRUE(chunk.nbytes <= most || chunk.nbytes == 2) << "seed " << seed;
      std::map<std::int64_t, std::int64_t> packed;
      for (std::int64_t flat = 0; flat < element_count(chunk.packed.shape).value(); ++flat) {
        packed[offset_of(chunk.packed, flat)] = chunk.host_offset + offset_of(chunk.host, flat);
      }
      for (std::int64_t flat = 0; flat < element_count(chunk.device.shape).value(); ++flat) {
        const bool is_new =
            got.emplace(chunk.device_offset + offset_of(chunk.device, flat), packed.at(offset_of(chunk.landing, flat)))
                .second;
        ASSERT_TRUE(is_new) << "seed " << seed << ": an element comes twice";
      }
    }
    ASSERT_EQ(got, wanted) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ferry::test
