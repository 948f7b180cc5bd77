// Deliberate mistakes: tests switch a rule off by name, and some other test must then fail. Compiled in for tests only
// (FERRY_MUTATIONS); elsewhere every question is a constant.
#pragma once

#include <cstdint>

namespace ferry {

enum class Mutation : std::uint8_t {
  none,
  copy_before_snapshot,      // the copy stream is not ordered after the snapshot
  copy_before_pack,          // a copy out of staging is not ordered after the kernel that fills it
  reuse_pack_slot_early,     // the next part is packed where the copy of an earlier one may run
  unpack_before_copy,        // a kernel that unpacks staging is not ordered after the copy that fills it
  reuse_unpack_slot_early,   // the next part is copied to where the kernel that unpacks an earlier one may run
  leave_source_early,        // an upload from the caller's own pinned memory returns before it was read
  short_staging_slot,        // staging for what is packed is smaller than that
  skip_producer_order,       // our work is not enqueued on, or ordered after, the producer's stream
  skip_host_wait,            // a result is handed out before its copy is done
  release_source_early,      // the source's memory is let go when the call returns
  reuse_staging_early,       // a device slot is reused while its copy may run
  reuse_ring_slot_early,     // a slot of the host ring is reused while its copy may run
  reuse_lease_early,         // a pinned block is reused while one of our copies may run
  reuse_exposed_block,       // an exposed block is reused without an epoch's fence
  fence_without_foreign,     // an epoch's fence leaves out the streams of others
  fence_before_known,        // an epoch's fence is recorded although the streams of others are not known yet
  ignore_capture,            // a capture is not looked for
  query_unrelaxed,           // events are asked without the relaxed capture mode
  ignore_registration_edge,  // a copy may cross from one registration to the next
  leave_context_pushed,      // a pushed context is not popped
  ignore_hold,               // hold() is forgotten
};

#ifdef FERRY_MUTATIONS
// The one that is switched on in this process.
[[nodiscard]] bool mutated(Mutation mutation) noexcept;
void switch_mutation(Mutation mutation) noexcept;
#else
[[nodiscard]] constexpr bool mutated(Mutation /*mutation*/) noexcept { return false; }
#endif

}  // namespace ferry
