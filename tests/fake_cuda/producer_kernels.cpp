// Kernels of a framework that work on any layout: what its `copy_`, `contiguous` and `fill_` put into its streams. They
// read their source when they run, not when they are enqueued.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "device_memory.hpp"
#include "event_order.hpp"
#include "framework.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace fake;

/// Equal shapes on both sides; steps in bytes, none negative. Where `flip` is given its bits are inverted in each
/// element, which negates or conjugates floating point numbers.
struct FakeElements {
  std::int64_t ndim;
  const std::int64_t* shape;
  const std::int64_t* to_steps;
  const std::int64_t* from_steps;
  std::size_t itemsize;
  const unsigned char* flip;
};

namespace {

struct Elements {
  std::vector<std::int64_t> shape, to_steps, from_steps;
  std::size_t itemsize;
  std::vector<unsigned char> flip;

  explicit Elements(const FakeElements& given)
      : shape(given.shape, given.shape + given.ndim),
        to_steps(given.to_steps, given.to_steps + given.ndim),
        from_steps(given.from_steps, given.from_steps + given.ndim),
        itemsize(given.itemsize) {
    if (given.flip != nullptr) flip.assign(given.flip, given.flip + given.itemsize);
  }

  std::size_t count() const {
    return static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{}));
  }

  /// Bytes from the first to the end of the last element.
  std::size_t span(const std::vector<std::int64_t>& steps) const {
    std::size_t last = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) last += static_cast<std::size_t>((shape[i] - 1) * steps[i]);
    return last + itemsize;
  }

  void carry(unsigned char* to, const unsigned char* from) const { carry(to, from, 0); }

 private:
  void carry(unsigned char* to, const unsigned char* from, std::size_t axis) const {
    if (axis == shape.size()) {
      unsigned char element[16];
      std::memcpy(element, from, itemsize);
      for (std::size_t i = 0; i < flip.size(); ++i) element[i] ^= flip[i];
      std::memcpy(to, element, itemsize);
      return;
    }
    for (std::int64_t i = 0; i < shape[axis]; ++i) {
      carry(to + i * to_steps[axis], from + i * from_steps[axis], axis + 1);
    }
  }
};

Result find_stream(World& w, void* handle, Device device, Stream& stream) {
  const AsFramework framework(w, device, "a producer's kernel");
  if (const Result failed = w.resolve(static_cast<Stream>(handle), stream); failed != success) return failed;
  return stream->context->error;  // as any further use of a context that failed
}

using Buffer = std::shared_ptr<std::vector<unsigned char>>;

/// One side of a kernel: device memory, or bytes that live as long as the kernel.
struct Side {
  Pointer pointer = 0;
  Buffer buffer = nullptr;
};

Result enqueue(World& w, Side to, Side from, const Elements& elements, Stream at, Lock& lock) {
  Operation operation;
  const bool reads = to.buffer != nullptr, writes = from.buffer != nullptr;
  operation.name = text("a producer's ", reads ? "read" : writes ? "write" : "copy", " in ", at->name);
  for (const bool written : {true, false}) {
    Side& side = written ? to : from;
    if (side.buffer != nullptr) continue;
    Place place;
    const std::size_t nbytes = elements.span(written ? elements.to_steps : elements.from_steps);
    const Result failed = find_device(w, operation.name.c_str(), side.pointer, nbytes, written, place);
    if (failed != success) return failed;
    operation.accesses.push_back(place.access);
    side.pointer = place.address;
  }
  operation.body = [to, from, elements] {
    unsigned char* written = to.buffer ? to.buffer->data() : reinterpret_cast<unsigned char*>(to.pointer);
    elements.carry(written, from.buffer ? from.buffer->data() : reinterpret_cast<const unsigned char*>(from.pointer));
  };
  w.submit(at, std::move(operation), lock);
  return success;
}

}  // namespace

EXPORT int fake_copy_strided_later(Pointer to, Pointer from, const FakeElements* given, void* stream, int device) {
  const Elements elements(*given);
  if (elements.count() == 0) return success;
  World& w = world();
  Lock lock(w.mutex);
  Stream at = nullptr;
  if (const Result failed = find_stream(w, stream, device, at); failed != success) return failed;
  const AsFramework framework(w, device, "a producer's kernel");
  return enqueue(w, {to}, {from}, elements, at, lock);
}

/// The host's values lie one after the other from `bytes` on by `from_steps`, and are taken at the call.
EXPORT int fake_write_strided_later(Pointer to, const unsigned char* bytes, const FakeElements* given, void* stream,
                                    int device) {
  const Elements elements(*given);
  if (elements.count() == 0) return success;
  World& w = world();
  Lock lock(w.mutex);
  Stream at = nullptr;
  if (const Result failed = find_stream(w, stream, device, at); failed != success) return failed;
  const AsFramework framework(w, device, "a producer's kernel");
  auto kept = std::make_shared<std::vector<unsigned char>>(bytes, bytes + elements.span(elements.from_steps));
  return enqueue(w, {to}, {0, kept}, elements, at, lock);
}

/// Wait for the stream and bring the values to the host, as a framework's `cpu()` does. No other stream is waited for.
EXPORT int fake_read_strided(Pointer from, unsigned char* out, const FakeElements* given, void* stream, int device) {
  const Elements elements(*given);
  if (elements.count() == 0) return success;
  World& w = world();
  Lock lock(w.mutex);
  Stream at = nullptr;
  if (const Result failed = find_stream(w, stream, device, at); failed != success) return failed;
  const AsFramework framework(w, device, "a producer's kernel");
  if (const Result failed = w.captures.admit_question(at); failed != success) return failed;
  // Not `out` itself: while the device is held the wait is given up, and the kernel runs after the caller is gone.
  auto landing = std::make_shared<std::vector<unsigned char>>(elements.span(elements.to_steps));
  if (const Result failed = enqueue(w, {0, landing}, {from}, elements, at, lock); failed != success) return failed;
  const u64 id = at->last;
  w.engine.finish(id, lock);
  if (at->context->error != success) return at->context->error;
  if (!w.engine.is_done(id)) return not_ready;
  std::memcpy(out, landing->data(), landing->size());
  return success;
}

/// Let later work of a stream wait for all work so far of another; they may belong to different devices.
EXPORT int fake_order_across(void* later, int later_device, void* earlier, int earlier_device) {
  World& w = world();
  Lock lock(w.mutex);
  Stream to = nullptr, from = nullptr;
  if (const Result failed = find_stream(w, later, later_device, to); failed != success) return failed;
  if (const Result failed = find_stream(w, earlier, earlier_device, from); failed != success) return failed;
  const AsFramework framework(w, later_device, "a producer's wait");
  return to == from ? success : order_streams(w, to, from, lock);
}
