#include <utility>
#include <vector>

#include "dlpack/describe.hpp"
#include "dlpack/managed.hpp"
#include "dlpack_support.hpp"
#include "support.hpp"

namespace ferry {
namespace {

using test::random_strided;
using test::tensor;

// A managed tensor of either ABI that counts how often it is deleted.
template <class Managed>
struct Counted {
  Managed managed{};
  int deletions = 0;

  Counted() {
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Counted*>(self->manager_ctx)->deletions; };
  }
};

template <class Managed>
class ManagedTensorOf : public ::testing::Test {};

using BothAbis = ::testing::Types<DLManagedTensorVersioned, DLManagedTensor>;
TYPED_TEST_SUITE(ManagedTensorOf, BothAbis);

TYPED_TEST(ManagedTensorOf, IsDeletedOnceWhenItsOwnerGoes) {
  Counted<TypeParam> counted;
  {
    const ManagedTensor owner(&counted.managed);
    EXPECT_EQ(&owner.tensor(), &counted.managed.dl_tensor);
    EXPECT_EQ(counted.deletions, 0);
  }
  EXPECT_EQ(counted.deletions, 1);
}

TYPED_TEST(ManagedTensorOf, IsDeletedOnceHoweverOftenItMoves) {
  Counted<TypeParam> counted;
  {
    ManagedTensor first(&counted.managed);
    ManagedTensor second(std::move(first));
    const ManagedTensor third(std::move(second));
    EXPECT_EQ(&third.tensor(), &counted.managed.dl_tensor);
    EXPECT_EQ(counted.deletions, 0);
  }
  EXPECT_EQ(counted.deletions, 1);
}

TYPED_TEST(ManagedTensorOf, IsDeletedOnceInAGrowingVector) {
  std::vector<Counted<TypeParam>> counted(10);
  for (auto& each : counted) each.managed.manager_ctx = &each;
  {
    std::vector<ManagedTensor> owners;
    for (auto& each : counted) owners.emplace_back(&each.managed);
  }
  for (const auto& each : counted) EXPECT_EQ(each.deletions, 1);
}

TYPED_TEST(ManagedTensorOf, NeedsNoDeleter) {
  TypeParam managed{};
  managed.dl_tensor.ndim = 7;
  const ManagedTensor owner(&managed);
  EXPECT_EQ(owner.tensor().ndim, 7);
  EXPECT_TRUE(owner.flags() == 0 && managed.deleter == nullptr);
}

TEST(ManagedTensor, HasFlagsOnlyInTheVersionedAbi) {
  Counted<DLManagedTensorVersioned> versioned;
  versioned.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
  EXPECT_EQ(ManagedTensor(&versioned.managed).flags(), 3U);
  Counted<DLManagedTensor> old;
  EXPECT_EQ(ManagedTensor(&old.managed).flags(), 0U);
}

TEST(ManagedTensor, OfAnotherMajorVersionIsNotReadButDeleted) {
  const std::pair<DLPackVersion, bool> versions[] = {{{DLPACK_MAJOR_VERSION, 0}, true},
                                                     {{DLPACK_MAJOR_VERSION, 99}, true},
                                                     {{DLPACK_MAJOR_VERSION + 1, 0}, false},
                                                     {{0, 8}, false}};
  for (const auto& [version, readable] : versions) {
    Counted<DLManagedTensorVersioned> counted;
    counted.managed.version = version;
    EXPECT_EQ(ManagedTensor(&counted.managed).is_readable(), readable) << version.major;
    EXPECT_EQ(counted.deletions, 1);
  }
  Counted<DLManagedTensor> old;
  EXPECT_TRUE(ManagedTensor(&old.managed).is_readable());
}

// Counts in an int how often it is released.
Owner owner_of(int& releases) {
  return {&releases, [](void* object) noexcept { ++*static_cast<int*>(object); }};
}

Extents strides_of(const DLTensor& dl) {
  return Extents(std::span<const std::int64_t>(dl.strides, static_cast<std::size_t>(dl.ndim)));
}

Extents shape_of(const DLTensor& dl) {
  return Extents(std::span<const std::int64_t>(dl.shape, static_cast<std::size_t>(dl.ndim)));
}

TEST(DLPackExport, SaysWhatTheTensorIsAndWhichVersionSpeaks) {
  std::vector<float> values(6);
  int releases = 0;
  const TensorRef ref = tensor(values.data(), DType::float32, {2, 3}, {4, 8});
  auto* managed = export_versioned(ref, DLPACK_FLAG_BITMASK_READ_ONLY, owner_of(releases));
  ASSERT_NE(managed, nullptr);
  EXPECT_EQ(managed->version.major, 1U);
  EXPECT_EQ(managed->version.minor, static_cast<std::uint32_t>(DLPACK_MINOR_VERSION));
  EXPECT_EQ(managed->flags, 1U);
  const DLTensor& dl = managed->dl_tensor;
  EXPECT_EQ(dl.data, values.data());
  EXPECT_EQ(dl.byte_offset, 0U);
  EXPECT_EQ(dl.device.device_type, kDLCPU);
  EXPECT_EQ(dl.device.device_id, 0);
  EXPECT_TRUE(test::is_same(dl.dtype, test::float32_code));
  EXPECT_EQ(shape_of(dl), (Extents{2, 3}));
  EXPECT_EQ(strides_of(dl), (Extents{1, 2}));
  EXPECT_EQ(releases, 0);
  managed->deleter(managed);
  EXPECT_EQ(releases, 1);
}

TEST(DLPackExport, SpeaksTheOldAbiToo) {
  std::vector<double> values(4);
  int releases = 0;
  auto* managed = export_unversioned(tensor(values.data() + 3, DType::float64, {4}, {-8}), owner_of(releases));
  ASSERT_NE(managed, nullptr);
  EXPECT_EQ(managed->dl_tensor.data, values.data() + 3);
  EXPECT_EQ(strides_of(managed->dl_tensor), Extents{-1});
  {
    const ManagedTensor owner(managed);
    EXPECT_EQ(releases, 0);
  }
  EXPECT_EQ(releases, 1);
}

TEST(DLPackExport, GivesCanonicalStridesWhereNoAddressDependsOnThem) {
  std::vector<float> values(6);
  const struct {
    Extents shape;
    Extents strides;
    Extents expected;
  } cases[] = {{{2, 1, 3}, {12, -777, 4}, {3, 3, 1}}, {{0, 3}, {99, 99}, {3, 1}}, {{1}, {0}, {1}}, {{}, {}, {}}};
  for (const auto& each : cases) {
    int releases = 0;
    const ManagedTensor owner(
        export_versioned(tensor(values.data(), DType::float32, each.shape, each.strides), 0, owner_of(releases)));
    EXPECT_EQ(strides_of(owner.tensor()), each.expected);
    EXPECT_EQ(shape_of(owner.tensor()), each.shape);
  }
}

TEST(DLPackExport, PacksABlockInCOrder) {
  std::vector<std::int16_t> values(24);
  int releases = 0;
  const std::int64_t shape[] = {2, 3, 4};
  {
    const ManagedTensor owner(export_packed(values.data(), DType::int16, shape, owner_of(releases)));
    EXPECT_EQ(owner.tensor().data, values.data());
    EXPECT_EQ(shape_of(owner.tensor()), (Extents{2, 3, 4}));
    EXPECT_EQ(strides_of(owner.tensor()), (Extents{12, 4, 1}));
    EXPECT_TRUE(owner.is_readable() && owner.flags() == 0);
    EXPECT_TRUE(test::is_same(owner.tensor().dtype, {kDLInt, 16, 1}));
  }
  EXPECT_EQ(releases, 1);
}

TEST(DLPackExport, PacksScalarsAndEmptyBlocksOfAnyExtents) {
  std::int16_t value = 7;
  int releases = 0;
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  const std::int64_t empty[] = {0, huge, huge};
  {
    const ManagedTensor scalar(export_packed(&value, DType::int16, {}, owner_of(releases)));
    EXPECT_EQ(scalar.tensor().ndim, 0);
    EXPECT_EQ(*static_cast<std::int16_t*>(scalar.tensor().data), 7);
    const ManagedTensor nothing(export_packed(nullptr, DType::int16, empty, owner_of(releases)));
    EXPECT_EQ(shape_of(nothing.tensor()), (Extents{0, huge, huge}));
    EXPECT_EQ(strides_of(nothing.tensor())[2], 1);
  }
  EXPECT_EQ(releases, 2);
}

TEST(DLPackExport, HoldsAsManyAxesAsNumPyAllows) {
  std::byte value{};
  int releases = 0;
  const std::vector<std::int64_t> shape(64, 1);
  const ManagedTensor packed(export_packed(&value, DType::uint8, shape, owner_of(releases)));
  EXPECT_EQ(strides_of(packed.tensor()), Extents(64, 1));
  const ManagedTensor strided(
      export_versioned(tensor(&value, DType::uint8, Extents(64, 1), Extents(64, 5)), 0, owner_of(releases)));
  EXPECT_EQ(strides_of(strided.tensor()), Extents(64, 1));
}

TEST(DLPackExport, IsReadBackAsTheSameElements) {
  test::Random random(20240917);
  for (int round = 0; round < 500; ++round) {
    const auto& [dtype, code] = test::dlpack_codes[static_cast<std::size_t>(random.between(0, 33))];
    const auto strided =
        random_strided(random, dtype, test::random_shape(random, static_cast<int>(random.between(0, 4))));
    int releases = 0;
    const bool versioned = random.between(0, 1) == 1;
    const ManagedTensor owner = versioned ? ManagedTensor(export_versioned(strided.ref, 0, owner_of(releases)))
                                          : ManagedTensor(export_unversioned(strided.ref, owner_of(releases)));
    const TensorRef back = describe(owner.tensor());
    EXPECT_TRUE(test::is_same(owner.tensor().dtype, code));
    ASSERT_EQ(back.dtype, dtype);
    ASSERT_EQ(back.data, strided.ref.data);
    ASSERT_EQ(back.layout.shape, strided.ref.layout.shape);
    const std::int64_t count = element_count(back.layout.shape).value();
    for (std::int64_t flat = 0; flat < count; ++flat) {
      ASSERT_EQ(test::offset_of(back.layout, flat), test::offset_of(strided.ref.layout, flat)) << flat;
    }
  }
}

}  // namespace
}  // namespace ferry
