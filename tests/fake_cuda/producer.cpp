// A stand-in for the framework that owns the tensors: it has a context, allocates, and writes in its streams.
#include <cstring>
#include <memory>
#include <vector>

#include "device_memory.hpp"
#include "event_order.hpp"
#include "framework.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace fake;

/// Make the device's primary context active and current to the calling thread, as a framework's first use does.
EXPORT void fake_use_device(int device) {
  World& w = world();
  Lock lock(w.mutex);
  auto& stack = w.thread().stack;
  if (!stack.empty()) stack.pop_back();
  stack.push_back(&framework_context(w, device));
}

EXPORT unsigned long long fake_alloc(std::size_t nbytes, int device) {
  World& w = world();
  Lock lock(w.mutex);
  const CUctx_st& primary = w.primary_of(&framework_context(w, device));
  return w.arena.allocate(nbytes == 0 ? 1 : nbytes, device, primary.id);
}

/// Give memory back as a framework's caching allocator does: in the order of the stream that it was allocated for. Work
/// elsewhere that this stream does not wait for may then meet somebody else's values.
EXPORT int fake_free(unsigned long long pointer, void* stream, int device) {
  World& w = world();
  Lock lock(w.mutex);
  const Allocation* owner = w.arena.find(pointer, 0);
  if (owner == nullptr || owner->begin != pointer) return invalid_value;  // of a world before the last reset
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number > per_thread_handle && !w.streams.knows(static_cast<Stream>(stream))) return free_device(w, pointer, lock);
  const AsFramework framework(w, device, "a producer's free");
  Stream at = nullptr;
  if (const Result failed = w.identify(static_cast<Stream>(stream), at); failed != success) return failed;
  if (at->capture != nullptr) {  // the graph's private pool keeps it for the replays
    at->capture->graph->body->memory.push_back(pointer);
    return success;
  }
  const auto touches = [own = owner->number](const Access& access) { return access.allocation == own; };
  for (const auto& name : w.engine.pending_beside(w.tail_of(at), touches)) {
    w.report.violation(text("device#", owner->number, " was given back to its allocator with pending work: ", name));
  }
  free_later(w, *owner, at, lock);
  return success;
}

/// The bytes as they are now, whatever is still to come.
EXPORT int fake_peek(unsigned long long pointer, void* out, std::size_t nbytes) {
  World& w = world();
  Lock lock(w.mutex);
  Allocation* owner = w.arena.find(pointer, nbytes);
  if (owner == nullptr || owner->freed) return invalid_value;
  w.arena.open(*owner);
  std::memcpy(out, reinterpret_cast<const void*>(pointer), nbytes);
  w.arena.close(*owner);
  return success;
}

EXPORT int fake_poke(unsigned long long pointer, const void* bytes, std::size_t nbytes) {
  World& w = world();
  Lock lock(w.mutex);
  Allocation* owner = w.arena.find(pointer, nbytes);
  if (owner == nullptr || owner->freed) return invalid_value;
  w.arena.open(*owner);
  std::memcpy(reinterpret_cast<void*>(pointer), bytes, nbytes);
  w.arena.close(*owner);
  return success;
}

/// A kernel of the framework: writes these bytes when its turn in the stream comes.
EXPORT int fake_write_later(unsigned long long pointer, const void* bytes, std::size_t nbytes, void* stream,
                            int device) {
  World& w = world();
  Lock lock(w.mutex);
  const AsFramework framework(w, device, "a producer's kernel");
  Place target;
  Stream at = nullptr;
  if (const Result failed = find_device(w, "a producer's kernel", pointer, nbytes, true, target); failed) return failed;
  if (const Result failed = w.resolve(static_cast<Stream>(stream), at); failed != success) return failed;
  const auto* begin = static_cast<const unsigned char*>(bytes);
  auto kept = std::make_shared<std::vector<unsigned char>>(begin, begin + nbytes);
  Operation operation;
  operation.name = text("a producer's kernel in ", at->name);
  operation.accesses = {target.access};
  operation.body = [kept, at = target.address] {
    std::memcpy(reinterpret_cast<void*>(at), kept->data(), kept->size());
  };
  w.submit(at, std::move(operation), lock);
  return success;
}

/// Order later work of one stream after all work so far of another, as a producer does for `__dlpack__(stream=...)`.
EXPORT int fake_order_after(void* later, void* earlier, int device) {
  World& w = world();
  Lock lock(w.mutex);
  const AsFramework framework(w, device, "a producer's wait");
  Stream to = nullptr, from = nullptr;
  if (const Result failed = w.resolve(static_cast<Stream>(later), to); failed != success) return failed;
  if (const Result failed = w.resolve(static_cast<Stream>(earlier), from); failed != success) return failed;
  return order_streams(w, to, from, lock);
}

/// Run everything that is pending, destructors of user objects included.
EXPORT void fake_drain() {
  World& w = world();
  Lock lock(w.mutex);
  w.engine.finish_all(lock);
  w.user_objects.wait_until_idle(lock);
}
