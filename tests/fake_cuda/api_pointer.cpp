// What the driver says about a pointer.
#include <algorithm>

#include "api.hpp"
#include "call.hpp"
#include "device_memory.hpp"

namespace fake {
namespace {

struct Facts {
  Context context = nullptr;
  unsigned type = 0;
  Pointer device_pointer = 0;
  void* host_pointer = nullptr;
  Device ordinal = -2;  // CU_DEVICE_INVALID
  Pointer begin = 0;
  std::size_t nbytes = 0;
  bool mapped = false;
};

Facts facts_of(World& w, Pointer pointer) {
  Facts facts;
  if (const Allocation* owner = w.arena.find(pointer, 1); owner != nullptr && !owner->freed) {
    facts.context = &w.primary[static_cast<std::size_t>(owner->device)];
    facts.type = memory_device;
    facts.device_pointer = pointer;
    facts.ordinal = owner->device;
    facts.begin = owner->begin;
    facts.nbytes = owner->nbytes;
    facts.mapped = true;
    return facts;
  }
  const bool by_alias = !w.settings.same_host_pointers && host_address_of(w, pointer) != 0;
  const std::uintptr_t host = by_alias ? host_address_of(w, pointer) : pointer;
  const auto range = w.host.classify(host, 1);
  if (range.kind != HostKind::pinned) return facts;
  const Registration& registration = *range.registration;
  facts.context = &w.primary[static_cast<std::size_t>(registration.device)];
  facts.type = memory_host;
  facts.device_pointer = device_pointer_of(w, host);
  facts.host_pointer = reinterpret_cast<void*>(host);
  facts.ordinal = registration.device;
  facts.begin = by_alias ? device_pointer_of(w, registration.begin) : registration.begin;
  facts.nbytes = registration.nbytes;
  facts.mapped = true;
  return facts;
}

bool give(const Facts& facts, int attribute, void* out) {
  switch (attribute) {
    case 1:
      *static_cast<Context*>(out) = facts.context;
      return true;
    case 2:
      *static_cast<unsigned*>(out) = facts.type;
      return true;
    case 3:
      *static_cast<Pointer*>(out) = facts.device_pointer;
      return true;
    case 4:
      *static_cast<void**>(out) = facts.host_pointer;
      return true;
    case 8:
      *static_cast<unsigned*>(out) = 0;
      return true;
    case 9:
      *static_cast<int*>(out) = facts.ordinal;
      return true;
    case 11:
      *static_cast<Pointer*>(out) = facts.begin;
      return true;
    case 12:
      *static_cast<std::size_t*>(out) = facts.nbytes;
      return true;
    case 13:
      *static_cast<bool*>(out) = facts.mapped;
      return true;
    default:
      return false;
  }
}

}  // namespace

Result cuPointerGetAttributes(unsigned count, int* attributes, void** data, Pointer pointer) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of_memory(pointer)); };
  return call("cuPointerGetAttributes", Needs::health, arguments, [&](World& w, Lock&) {
    if (count == 0 || attributes == nullptr || data == nullptr) return invalid_value;
    if (std::ranges::none_of(w.primary, &CUctx_st::alive)) return invalid_context;
    const Facts facts = facts_of(w, pointer);
    for (unsigned i = 0; i < count; ++i) {
      if (!give(facts, attributes[i], data[i])) return invalid_value;
    }
    return success;
  });
}

}  // namespace fake
