// Copies in stream order. Host memory that is to be written is poisoned at once: who reads it too early sees that.
#include <cstring>

#include "api.hpp"
#include "call.hpp"
#include "copy.hpp"

namespace fake {
namespace {

std::string arguments_of(World& w, std::size_t nbytes, std::uintptr_t to, std::uintptr_t from, Stream stream) {
  return text(" bytes=", nbytes, " from=", w.name_of_memory(from), " to=", w.name_of_memory(to),
              " stream=", w.name_of(stream));
}

}  // namespace

Result cuMemcpyDtoHAsync(void* to, Pointer from, std::size_t nbytes, Stream stream) {
  const char* name = "cuMemcpyDtoHAsync";
  const auto arguments = [&](World& w) {
    return arguments_of(w, nbytes, reinterpret_cast<std::uintptr_t>(to), from, stream);
  };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Place target, source;
    if (nbytes == 0) return success;
    if (const Result failed = find_host(w, name, to, nbytes, true, target); failed != success) return failed;
    if (const Result failed = find_device(w, name, from, nbytes, false, source); failed != success) return failed;
    return copy(w, name, stream, target, source, one_row(nbytes), lock);
  });
}

Result cuMemcpyHtoDAsync(Pointer to, const void* from, std::size_t nbytes, Stream stream) {
  const char* name = "cuMemcpyHtoDAsync";
  const auto arguments = [&](World& w) {
    return arguments_of(w, nbytes, to, reinterpret_cast<std::uintptr_t>(from), stream);
  };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Place target, source;
    if (nbytes == 0) return success;
    if (const Result failed = find_device(w, name, to, nbytes, true, target); failed != success) return failed;
    if (const Result failed = find_host(w, name, from, nbytes, false, source); failed != success) return failed;
    return copy(w, name, stream, target, source, one_row(nbytes), lock);
  });
}

Result cuMemcpyDtoDAsync(Pointer to, Pointer from, std::size_t nbytes, Stream stream) {
  const char* name = "cuMemcpyDtoDAsync";
  const auto arguments = [&](World& w) { return arguments_of(w, nbytes, to, from, stream); };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Place target, source;
    if (nbytes == 0) return success;
    if (const Result failed = find_device(w, name, to, nbytes, true, target); failed != success) return failed;
    if (const Result failed = find_device(w, name, from, nbytes, false, source); failed != success) return failed;
    return copy(w, name, stream, target, source, one_row(nbytes), lock);
  });
}

Result cuMemcpy2DAsync(const Copy2D* copy_2d, Stream stream) {
  const char* name = "cuMemcpy2DAsync";
  const auto arguments = [&](World& w) {
    if (copy_2d == nullptr) return std::string();
    return text(" width=", copy_2d->width, " height=", copy_2d->height, " stream=", w.name_of(stream));
  };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    if (copy_2d == nullptr) return invalid_value;
    const Copy2D& c = *copy_2d;
    if (c.width == 0 || c.height == 0) return success;
    const Rows rows{c.width, c.height, c.src_pitch, c.dst_pitch};
    if (c.height > 1 && (c.src_x + c.width > c.src_pitch || c.dst_x + c.width > c.dst_pitch)) return invalid_value;
    const auto find = [&](unsigned type, const void* host, Pointer device, std::size_t offset, std::size_t nbytes,
                          bool writes, Place& place) {
      if (type == memory_host)
        return find_host(w, name, static_cast<const char*>(host) + offset, nbytes, writes, place);
      if (type == memory_device) return find_device(w, name, device + offset, nbytes, writes, place);
      return invalid_value;
    };
    Place target, source;
    const Result no_source = find(c.src_type, c.src_host, c.src_device, c.src_y * c.src_pitch + c.src_x,
                                  rows.span(c.src_pitch), false, source);
    if (no_source != success) return no_source;
    const Result no_target = find(c.dst_type, c.dst_host, c.dst_device, c.dst_y * c.dst_pitch + c.dst_x,
                                  rows.span(c.dst_pitch), true, target);
    if (no_target != success) return no_target;
    return copy(w, name, stream, target, source, rows, lock);
  });
}

Result cuMemsetD8Async(Pointer to, unsigned char value, std::size_t nbytes, Stream handle) {
  const char* name = "cuMemsetD8Async";
  const auto arguments = [&](World& w) {
    return text(" bytes=", nbytes, " to=", w.name_of_memory(to), " stream=", w.name_of(handle));
  };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Place target;
    Stream stream = nullptr;
    if (nbytes == 0) return success;
    if (const Result failed = find_device(w, name, to, nbytes, true, target); failed != success) return failed;
    if (const Result failed = w.resolve(handle, stream); failed != success) return failed;
    Operation operation;
    operation.name = text(name, " in ", stream->name);
    operation.accesses = {target.access};
    operation.body = [at = target.address, value, nbytes] { std::memset(reinterpret_cast<void*>(at), value, nbytes); };
    w.submit(stream, std::move(operation), lock);
    return success;
  });
}

}  // namespace fake
