// What kind of machine and driver is played: presets for tests, all at their defaults after a reset.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include "types.hpp"

namespace fake {

struct Settings {
  int driver_version = 13000;
  int release = 580;
  Device devices = 1;
  Result init_result = success;
  bool same_host_pointers = true;  ///< a registered page has one address for host and device
  bool register_supported = true;
  bool register_permitted = true;
  bool read_only_register = true;
  bool register_fails_at_random = false;
  bool handles_recur = false;             ///< a destroyed stream's or event's address is given out again at once
  bool copy_on_write_after_fork = false;  ///< old kernels: registered pages that a fork shares go stale
  bool knows_five_arguments = true;       ///< cuGetProcAddress_v2 answers
  int not_ready_answers = 3;              ///< how often a query puts off before work is pushed on
  std::uint64_t host_budget = std::numeric_limits<std::uint64_t>::max();
  std::size_t queue_limit = 1024;  ///< operations a stream holds before a submit blocks

  // Captures: what the documentation leaves open.
  bool wrong_ends_spare = false;            ///< an end in the wrong stream or thread leaves the capture valid
  bool unrecorded_waits_are_empty = false;  ///< waiting in a capture for an event that was never recorded is allowed
  bool captures_pageable_copies = false;
  bool replays_poison = false;  ///< a launch fills what its copies will write on the host, as ordinary copies do
  Result stale_event_answer = captured_event;  ///< of an event that was recorded in a capture which has ended

  bool green_context = false;                ///< the framework works in a green context, whose null stream is its own
  bool green_contexts_share_events = false;  ///< with their primary context
  bool registrations_outlive_context = false;
  bool stream_writes_supported = true;
  std::size_t batch_limit = 50000;  ///< copies that one batch may have

  Result image_answer = success;  ///< to every image of kernels
  bool lazy_loading = false;      ///< a kernel is loaded by its first launch, unless its attributes were asked for
  std::uint32_t kernel_first_block = 0, kernel_blocks = ~0U;  ///< only these run
  std::uint64_t kernel_seed = 0;                              ///< chooses the orders of blocks, threads and stores

  // Broken on purpose, to show what the waits are for: accepted, and then nothing is waited for.
  bool forgets_stream_waits = false;
  bool forgets_host_waits = false;  ///< for events; streams are still waited for

  std::set<std::string> missing;  ///< symbols that this driver lacks

  /// False if there is no such preset.
  bool apply(const std::string& preset);
};

}  // namespace fake
