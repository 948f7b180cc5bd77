#include "settings.hpp"

#include <functional>
#include <map>

namespace fake {
namespace {

void release(Settings& settings, int number, int version) {
  settings.release = number;
  settings.driver_version = version;
  settings.knows_five_arguments = version >= 12000;
}

const std::map<std::string, std::function<void(Settings&)>>& presets() {
  static const std::map<std::string, std::function<void(Settings&)>> all{
      {"driver_470", [](Settings& s) { release(s, 470, 11040); }},
      {"driver_515", [](Settings& s) { release(s, 515, 11070); }},
      {"driver_525", [](Settings& s) { release(s, 525, 12000); }},
      {"driver_535", [](Settings& s) { release(s, 535, 12020); }},
      {"driver_550", [](Settings& s) { release(s, 550, 12040); }},
      {"driver_560", [](Settings& s) { release(s, 560, 12060); }},
      {"driver_570", [](Settings& s) { release(s, 570, 12080); }},
      {"driver_580", [](Settings& s) { release(s, 580, 13000); }},
      {"no_device", [](Settings& s) { s.devices = 0, s.init_result = no_device; }},
      {"two_devices", [](Settings& s) { s.devices = 2; }},
      {"eight_devices", [](Settings& s) { s.devices = 8; }},
      {"stub_library", [](Settings& s) { s.init_result = stub_library; }},
      {"driver_mismatch", [](Settings& s) { s.init_result = driver_mismatch; }},
      {"compat_not_supported", [](Settings& s) { s.init_result = compat_not_supported; }},
      {"host_pointers_differ", [](Settings& s) { s.same_host_pointers = false; }},
      {"register_unsupported", [](Settings& s) { s.register_supported = false; }},
      {"register_not_permitted", [](Settings& s) { s.register_permitted = false; }},
      {"register_budget", [](Settings& s) { s.host_budget = std::uint64_t{1} << 20; }},
      {"register_random_failure", [](Settings& s) { s.register_fails_at_random = true; }},
      {"no_read_only_register", [](Settings& s) { s.read_only_register = false; }},
      {"handles_recur", [](Settings& s) { s.handles_recur = true; }},
      {"short_queue", [](Settings& s) { s.queue_limit = 4; }},
      {"wrong_ends_spare", [](Settings& s) { s.wrong_ends_spare = true; }},
      {"unrecorded_waits_are_empty", [](Settings& s) { s.unrecorded_waits_are_empty = true; }},
      {"captures_pageable_copies", [](Settings& s) { s.captures_pageable_copies = true; }},
      {"replays_poison", [](Settings& s) { s.replays_poison = true; }},
      {"stale_events_are_invalid", [](Settings& s) { s.stale_event_answer = invalid_value; }},
      {"green_context", [](Settings& s) { s.green_context = true; }},
      {"green_contexts_share_events", [](Settings& s) { s.green_contexts_share_events = true; }},
      {"registrations_outlive_context", [](Settings& s) { s.registrations_outlive_context = true; }},
      {"no_stream_writes", [](Settings& s) { s.stream_writes_supported = false; }},
      {"forgets_stream_waits", [](Settings& s) { s.forgets_stream_waits = true; }},
      {"forgets_host_waits", [](Settings& s) { s.forgets_host_waits = true; }},
      {"image_invalid", [](Settings& s) { s.image_answer = invalid_image; }},
      {"image_of_other_architectures", [](Settings& s) { s.image_answer = no_binary; }},
      {"image_with_invalid_ptx", [](Settings& s) { s.image_answer = invalid_ptx; }},
      {"image_of_newer_toolkit", [](Settings& s) { s.image_answer = unsupported_ptx; }},
      {"lazy_loading", [](Settings& s) { s.lazy_loading = true; }},
      {"sysmem_old", [](Settings& s) { s.copy_on_write_after_fork = true; }},
  };
  return all;
}

}  // namespace

bool Settings::apply(const std::string& preset) {
  const auto found = presets().find(preset);
  if (found == presets().end()) return false;
  found->second(*this);
  return true;
}

}  // namespace fake
