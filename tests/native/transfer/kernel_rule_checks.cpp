// The rules that kernels ask for, each with a story that shows when it is broken.
#include "rule_checks.hpp"
#include "transfer_world.hpp"

namespace ferry::test {
namespace {

// What `tell` says about a world with kernels, and what is left when its own things are gone.
template <class Tell>
std::string in_world(const WorldOptions& options, std::uint32_t seed, Tell tell) {
  Random random(seed);
  TransferWorld world(options);
  const std::string said = tell(world, random);
  return said + world.end();
}

// Every other element of each row: no copy alone packs that.
Strided gapped_image(Random& random, std::int64_t rows, std::int64_t columns) {
  Strided image = packed_image(random, DType::float32, {rows, 2 * columns});
  image.ref.layout = {{rows, columns}, {8 * columns, 8}, 4};
  return image;
}

WorldOptions with_kernels(const char* schedule, std::uint32_t seed) {
  WorldOptions made{schedule, seed, {}, small_limits()};
  made.limits.kernels = true;
  return made;
}

// Memory that kernels cannot store to, so that they pack.
HostTarget only_copied_to(HostTarget target) {
  target.owner = std::move(target.lease);
  return target;
}

std::string packing_comes_before_the_copy(const char* schedule, std::uint32_t seed) {
  return in_world(with_kernels(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const Strided image = gapped_image(random, 16, 16);
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    const HostTarget target = only_copied_to(world.target(packed_image(random, DType::float32, {16, 16})));
    Transfers::Batch batch(world.transfers());
    std::string said = error_text([&] {
      batch.download(tensor, target, Snapshot::never, BackPressure::wait);
      batch.close()->wait();
    });
    return said + difference(values_of(target.ref), values_of(image.ref), "a packed download");
  });
}

// A tensor that staging holds a part of, in many parts.
std::string check_parts(const char* schedule, std::uint32_t seed) {
  WorldOptions small = with_kernels(schedule, seed);
  small.limits.staging_nbytes = 4 << 10;
  return in_world(small, seed, [&](TransferWorld& world, Random& random) {
    const Strided image = gapped_image(random, 64, 64);
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    const HostTarget target = only_copied_to(world.target(packed_image(random, DType::float32, {64, 64})));
    Transfers::Batch batch(world.transfers());
    std::string said = error_text([&] {
      batch.download(tensor, target, Snapshot::never, BackPressure::wait);
      batch.close()->wait();
    });
    return said + difference(values_of(target.ref), values_of(image.ref), "a download in parts");
  });
}

std::string parts_are_copied_after_they_were_packed(const char* schedule, std::uint32_t seed) {
  return check_parts(schedule, seed);
}

std::string parts_are_packed_after_earlier_ones_were_copied(const char* schedule, std::uint32_t seed) {
  return check_parts(schedule, seed);
}

// Two snapshots, one behind the other in staging.
std::string what_is_packed_has_room(const char* schedule, std::uint32_t seed) {
  return in_world(with_kernels(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const CUstream stream = world.made_stream();
    const Strided images[] = {gapped_image(random, 16, 32), gapped_image(random, 16, 32)};
    const DeviceTensor tensors[] = {world.tensor(images[0], stream), world.tensor(images[1], stream)};
    const Strided like = packed_image(random, DType::float32, {16, 32});
    const HostTarget targets[] = {world.target(like), world.target(like)};
    Transfers::Batch batch(world.transfers());
    std::string said = error_text([&] {
      for (std::size_t i = 0; i < 2; ++i) batch.download(tensors[i], targets[i], Snapshot::always, BackPressure::wait);
      batch.close()->wait();
    });
    said += difference(values_of(targets[0].ref), values_of(images[0].ref), "the first download");
    return said + difference(values_of(targets[1].ref), values_of(images[1].ref), "the second download");
  });
}

// A scattered tensor on the device, of values from ordinary or pinned memory that change when the call returns.
std::string check_upload(const char* schedule, std::uint32_t seed, std::int64_t rows, HostMemory where) {
  return in_world(with_kernels(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const Strided image = gapped_image(random, rows, 64);
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    Strided like = packed_image(random, DType::float32, {rows, 64});
    const std::vector<std::byte> wanted = values_of(like.ref);
    HostTarget source{like.ref, nullptr, nullptr, {}};
    if (where != HostMemory::ordinary) source = world.target(like);
    std::string said = error_text([&] {
      const auto pending = world.transfers().upload(tensor, source, where);
      std::fill_n(source.ref.data, wanted.size(), std::byte{0x5A});
      pending->wait();
    });
    world.settle();
    return said + difference(values_on_device(tensor, image), wanted, "an upload");
  });
}

std::string unpacking_comes_after_the_copy(const char* schedule, std::uint32_t seed) {
  return check_upload(schedule, seed, 12, HostMemory::ordinary);
}

// Many parts take turns in staging.
std::string parts_arrive_after_earlier_ones_were_unpacked(const char* schedule, std::uint32_t seed) {
  return check_upload(schedule, seed, 160, HostMemory::ordinary);
}

std::string pinned_sources_are_read_before_the_call_returns(const char* schedule, std::uint32_t seed) {
  return check_upload(schedule, seed, 40, HostMemory::pinned);
}

// One copy into a block, without staging.
std::string large_pinned_sources_are_read_before_the_call_returns(const char* schedule, std::uint32_t seed) {
  return in_world(with_kernels(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const Strided image = packed_image(random, DType::float32, {80, 64});
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    const HostTarget source = world.target(packed_image(random, DType::float32, {80, 64}));
    const std::vector<std::byte> wanted = values_of(source.ref);
    std::string said = error_text([&] {
      world.transfers().upload(tensor, source, HostMemory::pinned);
      std::fill_n(source.ref.data, wanted.size(), std::byte{0x5A});
    });
    world.settle();
    return said + difference(values_on_device(tensor, image), wanted, "an upload");
  });
}

}  // namespace

const std::vector<RuleCheck>& kernel_rule_checks() {
  static const std::vector<RuleCheck> all{
      {"PackingComesBeforeTheCopy", Mutation::copy_before_pack, packing_comes_before_the_copy},
      {"PartsAreCopiedAfterTheyWerePacked", Mutation::copy_before_pack, parts_are_copied_after_they_were_packed},
      {"PartsArePackedAfterEarlierOnesWereCopied", Mutation::reuse_pack_slot_early,
       parts_are_packed_after_earlier_ones_were_copied},
      {"WhatIsPackedHasRoom", Mutation::short_staging_slot, what_is_packed_has_room},
      {"UnpackingComesAfterTheCopy", Mutation::unpack_before_copy, unpacking_comes_after_the_copy},
      {"PartsArriveAfterEarlierOnesWereUnpacked", Mutation::reuse_unpack_slot_early,
       parts_arrive_after_earlier_ones_were_unpacked},
      {"PinnedSourcesAreReadBeforeTheCallReturns", Mutation::leave_source_early,
       pinned_sources_are_read_before_the_call_returns},
      {"LargePinnedSourcesAreReadBeforeTheCallReturns", Mutation::leave_source_early,
       large_pinned_sources_are_read_before_the_call_returns},
  };
  return all;
}

}  // namespace ferry::test
