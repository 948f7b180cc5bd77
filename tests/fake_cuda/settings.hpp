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

  std::set<std::string> missing;  ///< symbols that this driver lacks

  /// False if there is no such preset.
  bool apply(const std::string& preset);
};

}  // namespace fake
