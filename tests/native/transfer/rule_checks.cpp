#include "rule_checks.hpp"

#include "transfer_world.hpp"

namespace ferry::test {
namespace {

using cuda::test::as_somebody_else;
using cuda::test::driver_function;
using cuda::test::fake;
using cuda::test::live;

WorldOptions options(const char* schedule, std::uint32_t seed) { return {schedule, seed, {}, small_limits()}; }

// What `tell` says about its world, and what is left when its own things are gone.
template <class Tell>
std::string in_world(const WorldOptions& options, std::uint32_t seed, Tell tell) {
  Random random(seed);
  TransferWorld world(options);
  const std::string said = tell(world, random);
  return said + world.end();
}

// What a download of one tensor brings, as the case wants it.
std::string check_download(const char* schedule, std::uint32_t seed, Snapshot snapshot) {
  return in_world(options(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const Strided image = packed_image(random, DType::float32, {8, 16});
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    const HostTarget target = world.target(packed_image(random, DType::float32, {8, 16}));
    Transfers::Batch batch(world.transfers());
    std::string said = error_text([&] {
      batch.download(tensor, target, snapshot, BackPressure::raise);
      batch.close()->wait();
    });
    said += difference(values_of(target.ref), values_of(image.ref), "a download");
    return said;
  });
}

std::string copy_comes_after_snapshot(const char* schedule, std::uint32_t seed) {
  return check_download(schedule, seed, Snapshot::always);
}

std::string copy_of_a_snapshot_comes_after_its_making(const char* schedule, std::uint32_t seed) {
  return check_download(schedule, seed, Snapshot::taken);
}

std::string copy_comes_after_producer(const char* schedule, std::uint32_t seed) {
  return check_download(schedule, seed, Snapshot::never);
}

std::string snapshot_comes_after_producer(const char* schedule, std::uint32_t seed) {
  return check_download(schedule, seed, Snapshot::always);
}

std::string wait_lasts_until_the_copy_is_done(const char* schedule, std::uint32_t seed) {
  return check_download(schedule, seed, Snapshot::never);
}

std::string ring_waits_for_the_copy(const char* schedule, std::uint32_t seed) {
  return in_world(options(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const Strided image = packed_image(random, DType::float32, {32, 16});
    const Strided destination = packed_image(random, DType::float32, {32, 16});
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    std::string said = error_text([&] { world.transfers().download_through_ring(tensor, destination.ref); });
    said += difference(values_of(destination.ref), values_of(image.ref), "a download through the ring");
    return said;
  });
}

// Memory that its allocator lends again in the order of another stream than the one it is read in.
std::string source_is_held_until_it_was_read(const char* schedule, std::uint32_t seed) {
  return in_world(options(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const CUstream home = world.made_stream();
    const CUstream used = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {8, 16});
    DeviceTensor tensor = world.tensor(image, home);
    fake<int(void*, void*, int)>("fake_order_after")(used, home, 0);
    tensor.stream = used;
    const HostTarget target = world.target(packed_image(random, DType::float32, {8, 16}));
    Transfers::Batch batch(world.transfers());
    std::string said = error_text([&] {
      constexpr Snapshot ways[] = {Snapshot::never, Snapshot::always, Snapshot::taken};
      batch.download(tensor, target, ways[seed % 3], BackPressure::raise);
      tensor.owner.reset();
      batch.close()->wait();
    });
    said += difference(values_of(target.ref), values_of(image.ref), "a download");
    return said;
  });
}

// Two snapshots that do not fit into staging together, while the first copy may still run.
std::string slot_is_lent_again_after_its_copy(const char* schedule, std::uint32_t seed) {
  WorldOptions small = options(schedule, seed);
  small.limits.staging_nbytes = 1024;
  return in_world(small, seed, [&](TransferWorld& world, Random& random) {
    const CUstream stream = world.made_stream();
    const Strided first = packed_image(random, DType::float32, {16, 16});
    const Strided second = packed_image(random, DType::float32, {16, 16});
    const DeviceTensor tensors[] = {world.tensor(first, stream), world.tensor(second, stream)};
    const HostTarget targets[] = {world.target(first), world.target(second)};
    std::shared_ptr<Pending> pending[2];
    std::string said = error_text([&] {
      for (std::size_t i = 0; i < 2; ++i) {
        Transfers::Batch batch(world.transfers());
        batch.download(tensors[i], targets[i], Snapshot::automatic, BackPressure::in_stream);
        pending[i] = batch.close();
      }
      // The producer's stream comes to its end first: the second snapshot is made, if there is one.
      as_somebody_else([&] { driver_function<int(CUstream)>("cuStreamSynchronize", 2000)(stream); });
      for (const auto& one : pending) one->wait();
    });
    said += difference(values_of(targets[0].ref), values_of(first.ref), "the first download");
    said += difference(values_of(targets[1].ref), values_of(second.ref), "the second download");
    return said;
  });
}

// More than the ring holds at a time.
std::string ring_slot_is_filled_again_after_its_copy(const char* schedule, std::uint32_t seed) {
  WorldOptions small = options(schedule, seed);
  small.limits.ring_nbytes = 4 << 10;
  return in_world(small, seed, [&](TransferWorld& world, Random& random) {
    const Extents shape{12, 256};
    const Strided image = packed_image(random, DType::float32, shape);
    const Strided source = packed_image(random, DType::float32, shape);
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    std::string said = error_text([&] { world.transfers().upload_through_ring(tensor, source.ref)->wait(); });
    world.settle();
    said += difference(values_on_device(tensor, image), values_of(source.ref), "an upload");
    return said;
  });
}

std::string no_context_stays_pushed(const char* schedule, std::uint32_t seed) {
  WorldOptions two = options(schedule, seed);
  two.presets = {"two_devices"};
  return in_world(two, seed, [&](TransferWorld& world, Random& random) {
    const Strided image = packed_image(random, DType::float32, {8, 16});
    const DeviceTensor tensor = world.tensor(image, world.made_stream(1, 1), 1);
    const HostTarget target = world.target(image, 1);
    Transfers::Batch batch(world.transfers());
    std::string said = error_text([&] {
      batch.download(tensor, target, Snapshot::automatic, BackPressure::wait);
      batch.close()->wait();
    });
    const auto current = cuda::current_device(world.driver().functions());
    if (current != 0) said += "another context is current than before\n";
    return said;
  });
}

std::string capture_is_left_alone(const char* schedule, std::uint32_t seed) {
  return in_world(options(schedule, seed), seed, [&](TransferWorld& world, Random& random) {
    const CUstream stream = world.made_stream();
    const Strided image = packed_image(random, DType::float32, {8, 16});
    const DeviceTensor tensor = world.tensor(image, stream);
    const HostTarget target = world.target(image);
    const Strided other = packed_image(random, DType::float32, {8, 16});
    fake<void()>("fake_drain")();
    fake<int(void*, int, int)>("fake_begin_capture")(stream, 0, 0);
    std::string said;
    Transfers::Batch batch(world.transfers());
    const std::string answers[] = {
        error_text([&] {
          batch.download(tensor, target, seed % 2 == 0 ? Snapshot::never : Snapshot::always, BackPressure::raise);
        }),
        error_text([&] { batch.upload_pinned(tensor, target); }),
        error_text([&] { world.transfers().download_through_ring(tensor, other.ref); }),
        error_text([&] { static_cast<void>(world.transfers().upload_through_ring(tensor, other.ref)); })};
    for (const std::string& answer : answers) {
      if (answer.find("is being captured into a graph") == std::string::npos) said += "not refused: " + answer + "\n";
    }
    said += error_text([&] { batch.close()->wait(); });
    void* graph = nullptr;
    if (fake<int(void*, int, void**)>("fake_end_capture")(stream, 0, &graph) != 0) said += "the capture is destroyed\n";
    if (graph != nullptr) fake<int(void*)>("fake_destroy_graph")(graph);
    return said;
  });
}

// A block that the system locked in halves, and a copy over the border between them.
std::string copies_stay_inside_registrations(const char* schedule, std::uint32_t seed) {
  WorldOptions whole = options(schedule, seed);
  whole.limits.chunk_nbytes = std::size_t{1} << 20;
  return in_world(whole, seed, [&](TransferWorld& world, Random& random) {
    const Strided image = packed_image(random, DType::complex128, {128, 64});
    const DeviceTensor tensor = world.tensor(image, world.made_stream());
    cuda::test::fail("cuMemHostRegister", 1, cuda::result::out_of_memory);
    const HostTarget target = world.target(image);
    cuda::test::clear_faults();
    if (live("host_registrations") != 2) ADD_FAILURE() << "it is not locked in two parts";
    Transfers::Batch batch(world.transfers());
    const std::string said = error_text([&] {
      batch.download(tensor, target, Snapshot::never, BackPressure::raise);
      batch.close()->wait();
    });
    return said + difference(values_of(target.ref), values_of(image.ref), "a download");
  });
}

}  // namespace

const std::vector<RuleCheck>& rule_checks() {
  static const std::vector<RuleCheck> all{
      {"CopyComesAfterSnapshot", Mutation::copy_before_snapshot, copy_comes_after_snapshot},
      {"CopyOfASnapshotComesAfterItsMaking", Mutation::copy_before_snapshot, copy_of_a_snapshot_comes_after_its_making},
      {"CopyComesAfterProducer", Mutation::skip_producer_order, copy_comes_after_producer},
      {"SnapshotComesAfterProducer", Mutation::skip_producer_order, snapshot_comes_after_producer},
      {"WaitLastsUntilTheCopyIsDone", Mutation::skip_host_wait, wait_lasts_until_the_copy_is_done},
      {"RingWaitsForTheCopy", Mutation::skip_host_wait, ring_waits_for_the_copy},
      {"SourceIsHeldUntilItWasRead", Mutation::release_source_early, source_is_held_until_it_was_read},
      {"SlotIsLentAgainAfterItsCopy", Mutation::reuse_staging_early, slot_is_lent_again_after_its_copy},
      {"RingSlotIsFilledAgainAfterItsCopy", Mutation::reuse_ring_slot_early, ring_slot_is_filled_again_after_its_copy},
      {"NoContextStaysPushed", Mutation::leave_context_pushed, no_context_stays_pushed},
      {"CaptureIsLeftAlone", Mutation::ignore_capture, capture_is_left_alone},
      {"CopiesStayInsideRegistrations", Mutation::ignore_registration_edge, copies_stay_inside_registrations},
  };
  return all;
}

}  // namespace ferry::test
