// Device memory.
#include <algorithm>
#include <cstring>

#include "api.hpp"
#include "call.hpp"
#include "device_memory.hpp"

namespace fake {

Result free_device(World& w, Pointer pointer, Lock& lock) {
  Allocation* owner = w.arena.find(pointer, 0);
  if (owner == nullptr || owner->begin != pointer || owner->freed) {
    w.report.violation(owner != nullptr && owner->begin == pointer ? text("device#", owner->number, " was freed twice")
                                                                   : "a pointer was freed that was not allocated");
    return invalid_value;
  }
  const auto touches = [number = owner->number](const Access& access) { return access.allocation == number; };
  for (const auto& name : w.engine.pending_on(touches)) {
    w.report.violation(text("device#", owner->number, " was freed with pending work: ", name));
  }
  w.engine.wait_until_idle(touches, lock);
  w.arena.free(*owner);
  return success;
}

void free_later(World& w, const Allocation& allocation, Stream stream, Lock& lock) {
  Operation operation;
  operation.name = text("free device#", allocation.number);
  operation.finally = [&w, pointer = allocation.begin] {
    Allocation* freed = w.arena.find(pointer, 0);
    if (freed != nullptr && !freed->freed) w.arena.free(*freed);
  };
  w.submit(stream, std::move(operation), lock);
}

namespace {

/// In a capture memory belongs to the graph, at one address for all replays. Whatever an earlier one left is gone.
void add_memory_node(World& w, Stream at, Pointer pointer, std::size_t nbytes, unsigned char poison) {
  auto& own = at->capture->graph->body->memory;
  if (std::ranges::count(own, pointer) == 0) own.push_back(pointer);
  const Allocation& owner = *w.arena.find(pointer, 0);
  Operation operation;
  operation.name = text(poison == fresh_poison ? "allocate" : "free", " device#", owner.number);
  operation.accesses = {{pointer, nbytes, true, owner.number, 0}};
  operation.body = [pointer, nbytes, poison] { std::memset(reinterpret_cast<void*>(pointer), poison, nbytes); };
  w.submit_to_capture(at, std::move(operation));
}

}  // namespace

Result cuMemAlloc(Pointer* pointer, std::size_t nbytes) {
  return unsafe_call(
      "cuMemAlloc", Needs::context, [&](World&) { return text(" bytes=", nbytes); },
      [&](World& w, Lock&) {
        if (pointer == nullptr || nbytes == 0) return invalid_value;
        const Context context = w.current();
        *pointer = w.arena.allocate(nbytes, context->device, context->id);
        return *pointer == 0 ? out_of_memory : success;
      });
}

Result cuMemFree(Pointer pointer) {
  return unsafe_call(
      "cuMemFree", Needs::context, [&](World& w) { return text(" ", w.name_of_memory(pointer)); },
      [&](World& w, Lock& lock) { return free_device(w, pointer, lock); });
}

Result cuMemAllocAsync(Pointer* pointer, std::size_t nbytes, Stream stream) {
  const auto arguments = [&](World& w) { return text(" bytes=", nbytes, " stream=", w.name_of(stream)); };
  return call("cuMemAllocAsync", Needs::context, arguments, [&](World& w, Lock&) -> Result {
    Stream at = nullptr;
    if (pointer == nullptr || nbytes == 0) return invalid_value;
    if (const Result failed = w.resolve(stream, at); failed != success) return failed;
    *pointer = w.arena.allocate(nbytes, at->context->device, at->context_id);
    if (*pointer == 0) return out_of_memory;
    if (at->capture != nullptr) add_memory_node(w, at, *pointer, nbytes, fresh_poison);
    return success;
  });
}

Result cuMemFreeAsync(Pointer pointer, Stream stream) {
  const auto arguments = [&](World& w) { return text(" ", w.name_of_memory(pointer), " stream=", w.name_of(stream)); };
  return call("cuMemFreeAsync", Needs::context, arguments, [&](World& w, Lock& lock) {
    Stream at = nullptr;
    if (const Result failed = w.resolve(stream, at); failed != success) return failed;
    Allocation* owner = w.arena.find(pointer, 0);
    if (owner == nullptr || owner->begin != pointer || owner->freed) return invalid_value;
    if (at->capture != nullptr) {
      const auto& own = at->capture->graph->body->memory;
      if (std::ranges::count(own, pointer) == 0) return invalid_value;
      add_memory_node(w, at, pointer, owner->nbytes, freed_poison);
      return success;
    }
    free_later(w, *owner, at, lock);
    return success;
  });
}

}  // namespace fake
