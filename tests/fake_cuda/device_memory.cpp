#include "device_memory.hpp"

#include "host_pages.hpp"

namespace fake {
namespace {

constexpr std::uintptr_t nowhere = 1;

}  // namespace

Pointer device_pointer_of(World& w, std::uintptr_t host) {
  if (w.settings.same_host_pointers) return host;
  const auto range = w.host.classify(host, 1);
  return range.kind == HostKind::pinned ? range.registration->window + (host - range.registration->begin) : 0;
}

std::uintptr_t host_address_of(const World& w, Pointer pointer) {
  if (w.settings.same_host_pointers) return pointer;
  if (!w.host.is_window(pointer)) return 0;
  const Registration* seen = w.host.seen_at(pointer);
  return seen == nullptr ? nowhere : seen->begin + (pointer - seen->window);
}

Result find_device(World& w, const char* who, Pointer pointer, std::size_t nbytes, bool writes, Place& place) {
  if (Allocation* owner = w.arena.find(pointer, nbytes)) {
    if (owner->freed) {
      w.report.violation(text(who, " was given device#", owner->number, " after it was freed"));
      return invalid_value;
    }
    place.address = pointer;
    place.access = {place.address, nbytes, writes, owner->number, 0};
    return success;
  }
  const std::uintptr_t host = host_address_of(w, pointer);
  const auto range = w.host.classify(host, nbytes);
  if (host == 0 || range.kind != HostKind::pinned) {
    w.report.violation(text(who, " was given a range that is not one piece of device memory (",
                            w.name_of_memory(pointer), ", ", nbytes, " bytes)"));
    return invalid_value;
  }
  place.address = host;
  place.access = {host, nbytes, writes, 0, range.registration->number};
  return success;
}

Result find_host(World& w, const char* who, const void* pointer, std::size_t nbytes, bool writes, Place& place) {
  place.address = reinterpret_cast<std::uintptr_t>(pointer);
  if (pointer == nullptr) return invalid_value;
  if (w.arena.overlaps(place.address, nbytes)) {
    w.report.violation(text(who, " was given device memory as host memory"));
    return invalid_value;
  }
  const auto range = w.host.classify(place.address, nbytes);
  if (range.kind == HostKind::mixed) {
    w.report.violation(text(who, " was given a host range that is only partly inside one registration"));
    return invalid_value;
  }
  place.access = {place.address, nbytes, writes, 0, 0};
  place.pageable = range.kind == HostKind::pageable;
  if (place.pageable) {
    if (from_product()) w.report.violation(text(who, " was given pageable host memory"));
    return is_mapped(place.address, nbytes) ? success : invalid_value;
  }
  Registration& registration = *range.registration;
  place.access.registration = registration.number;
  if (!is_mapped(place.address, nbytes)) {
    w.report.violation(text(who, " was given host#", registration.number, ", which is no longer mapped"));
    return invalid_value;
  }
  if (writes && !registration.allocated && (registration.flags & host_read_only) != 0) {
    w.report.violation(text(who, " writes into host#", registration.number, ", registered for reading only"));
    return invalid_value;
  }
  if (registration.stale) {
    w.report.violation(text(who, " uses host#", registration.number, ", whose pages a fork made copy-on-write"));
  }
  if ((registration.flags & host_portable) == 0 && registration.context_id != w.primary_of(w.current()).id)
    place.pageable = true;
  return success;
}

}  // namespace fake
