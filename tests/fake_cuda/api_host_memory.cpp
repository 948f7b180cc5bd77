// Pinned host memory, and what the driver says about pointers.
#include <sys/mman.h>

#include "api.hpp"
#include "call.hpp"
#include "device_memory.hpp"
#include "host_pages.hpp"

namespace fake {
namespace {

auto describe(void* pointer) {
  return [pointer](World& w) { return text(" ", w.name_of_memory(reinterpret_cast<std::uintptr_t>(pointer))); };
}

/// No fence: work that is still to come there is reported, and will not write into memory that is no longer ours.
void let_go(World& w, Registration& registration, const char* how, Lock& lock) {
  const auto touches = [number = registration.number](const Access& access) { return access.registration == number; };
  for (const auto& name : w.engine.pending_on(touches)) {
    w.report.violation(text("host#", registration.number, " was ", how, " with pending work: ", name));
  }
  w.engine.orphan(registration.number);
  w.engine.wait_until_idle(touches, lock);
  if (!registration.allocated && !registration.reported && !is_mapped(registration.begin, registration.nbytes)) {
    w.report.violation(text("host#", registration.number, " was unmapped while registered"));
  }
}

Result may_register(World& w, std::uintptr_t begin, std::size_t nbytes, unsigned flags) {
  if (begin == 0 || nbytes == 0 || flags > 15 || begin + nbytes < begin) return invalid_value;
  if (!w.settings.register_supported) return not_supported;
  if (!w.settings.register_permitted) return not_permitted;
  if ((flags & host_read_only) != 0 && !w.settings.read_only_register) return not_supported;
  if (w.arena.overlaps(begin, nbytes) || !is_mapped(begin, nbytes)) return invalid_value;
  if (w.host.overlaps(begin, nbytes)) return already_registered;
  if ((flags & host_read_only) == 0 && !is_writable(begin, nbytes)) return invalid_value;
  const auto more = page_up(begin + nbytes) - page_down(begin);
  if (w.host.locked_bytes() + more > w.settings.host_budget) return out_of_memory;
  if (w.settings.register_fails_at_random && w.engine.chance(3)) return out_of_memory;
  return success;
}

}  // namespace

Result cuMemHostRegister(void* pointer, std::size_t nbytes, unsigned flags) {
  const auto arguments = [&](World&) { return text(" bytes=", nbytes, " flags=", flags); };
  return unsafe_call("cuMemHostRegister", Needs::context, arguments, [&](World& w, Lock&) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    if (const Result failed = may_register(w, begin, nbytes, flags); failed != success) return failed;
    w.host.add(begin, nbytes, flags, false, w.primary_of(w.current()).id, w.current()->device);
    return success;
  });
}

Result cuMemHostUnregister(void* pointer) {
  return unsafe_call("cuMemHostUnregister", Needs::context, describe(pointer), [&](World& w, Lock& lock) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    Registration* found = w.host.starting_at(begin);
    if (found == nullptr || found->allocated) return not_registered;
    let_go(w, *found, "unregistered", lock);
    w.host.remove(begin);
    return success;
  });
}

Result cuMemHostGetDevicePointer(Pointer* device_pointer, void* pointer, unsigned flags) {
  return call("cuMemHostGetDevicePointer", Needs::context, describe(pointer), [&](World& w, Lock&) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (device_pointer == nullptr || flags != 0) return invalid_value;
    const auto range = w.host.classify(address, 1);
    if (range.kind != HostKind::pinned || (range.registration->flags & host_device_map) == 0) return invalid_value;
    *device_pointer = device_pointer_of(w, address);
    return success;
  });
}

Result cuMemHostAlloc(void** pointer, std::size_t nbytes, unsigned flags) {
  const auto arguments = [&](World&) { return text(" bytes=", nbytes, " flags=", flags); };
  return unsafe_call("cuMemHostAlloc", Needs::context, arguments, [&](World& w, Lock&) {
    if (pointer == nullptr || nbytes == 0 || flags > 7) return invalid_value;
    if (w.host.locked_bytes() + page_up(nbytes) > w.settings.host_budget) return out_of_memory;
    void* memory = mmap(nullptr, page_up(nbytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return out_of_memory;
    madvise(memory, page_up(nbytes), MADV_DONTFORK);
    w.host.add(reinterpret_cast<std::uintptr_t>(memory), nbytes, flags, true, w.primary_of(w.current()).id,
               w.current()->device);
    *pointer = memory;
    return success;
  });
}

Result cuMemFreeHost(void* pointer) {
  return unsafe_call("cuMemFreeHost", Needs::context, describe(pointer), [&](World& w, Lock& lock) {
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    Registration* found = w.host.starting_at(begin);
    if (found == nullptr || !found->allocated) return invalid_value;
    let_go(w, *found, "freed", lock);
    munmap(pointer, page_up(found->nbytes));
    w.host.remove(begin);
    return success;
  });
}

}  // namespace fake
