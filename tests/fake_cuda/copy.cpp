// Host memory that is to be written is poisoned at once: who reads it too early sees that.
#include "copy.hpp"

#include <cstring>
#include <memory>
#include <vector>

namespace fake {
namespace {

void move_rows(std::uintptr_t to, std::uintptr_t from, const Rows& rows) {
  for (std::size_t i = 0; i < rows.height; ++i) {
    std::memmove(reinterpret_cast<void*>(to + i * rows.to_pitch),
                 reinterpret_cast<const void*>(from + i * rows.from_pitch), rows.width);
  }
}

void poison_rows(std::uintptr_t to, const Rows& rows) {
  show_to_sanitizer();
  for (std::size_t i = 0; i < rows.height; ++i) {
    std::memset(reinterpret_cast<void*>(to + i * rows.to_pitch), pending_poison, rows.width);
  }
  hide_from_sanitizer();
}

}  // namespace

Operation copy_operation(std::string name, const Place& to, const Place& from, Rows rows, bool read_now) {
  Operation operation;
  operation.name = std::move(name);
  operation.accesses = {to.access};
  if (read_now) {
    auto staged = std::make_shared<std::vector<unsigned char>>(rows.width * rows.height);
    const auto at = reinterpret_cast<std::uintptr_t>(staged->data());
    move_rows(at, from.address, {rows.width, rows.height, rows.from_pitch, rows.width});
    rows.from_pitch = rows.width;
    operation.body = [staged, at, target = to.address, rows] { move_rows(target, at, rows); };
  } else {
    operation.accesses.push_back(from.access);
    operation.body = [source = from.address, target = to.address, rows] { move_rows(target, source, rows); };
  }
  if (to.access.allocation == 0) operation.accepted = [at = to.address, rows] { poison_rows(at, rows); };
  return operation;
}

Result copy(World& w, const std::string& name, Stream handle, const Place& to, const Place& from, Rows rows,
            Lock& lock) {
  Stream stream = nullptr;
  if (const Result failed = w.resolve(handle, stream); failed != success) return failed;
  const bool capturing = stream->capture != nullptr;
  if (capturing && (to.pageable || from.pageable) && !w.settings.captures_pageable_copies) {
    w.captures.invalidate(*stream->capture);
    return capture_unsupported;
  }
  const bool read_now = from.pageable && !capturing;  // not in stream order
  const u64 id = w.submit(stream, copy_operation(name + " in " + stream->name, to, from, rows, read_now), lock);
  if (to.pageable || from.pageable) ++w.report.counts["pageable_copies"];
  if (!to.pageable || capturing) return success;
  ++w.report.counts["pageable_waits"];
  w.engine.finish(id, lock);
  return stream->context->error;
}

Result find_anywhere(World& w, const char* who, Pointer pointer, std::size_t nbytes, bool writes, Place& place) {
  const bool is_host =
      !w.arena.contains(pointer) && (w.settings.same_host_pointers || host_address_of(w, pointer) == 0);
  if (is_host) return find_host(w, who, reinterpret_cast<const void*>(pointer), nbytes, writes, place);
  return find_device(w, who, pointer, nbytes, writes, place);
}

}  // namespace fake
