// Copies between devices, batches of copies, and values written by a stream.
#include <algorithm>
#include <vector>

#include "api.hpp"
#include "call.hpp"
#include "copy.hpp"

namespace fake {
namespace {

constexpr std::size_t no_index = static_cast<std::size_t>(-1);
enum class SourceOrder : int { stream = 1, during_call = 2, any = 3 };

/// Device memory of this context, or registered host memory.
Result find_in_context(World& w, const char* who, Context context, Pointer pointer, std::size_t nbytes, bool writes,
                       Place& place) {
  if (context == nullptr || !w.knows(context)) return invalid_context;
  if (!context->alive()) return context_is_destroyed;
  if (const Result failed = find_device(w, who, pointer, nbytes, writes, place); failed != success) return failed;
  const Allocation* owner = w.arena.find(pointer, nbytes);
  if (owner == nullptr || owner->device == context->device) return success;
  w.report.violation(text(who, " was given ", context->name(), " for device#", owner->number, " of another device"));
  return invalid_value;
}

/// The attributes cover all copies, in order, and each names how its sources may be read.
bool are_valid(const CopyAttributes* attributes, const std::size_t* firsts, std::size_t n, std::size_t count) {
  if (attributes == nullptr || firsts == nullptr || n == 0 || n > count || firsts[0] != 0) return false;
  for (std::size_t i = 0; i < n; ++i) {
    if (attributes[i].source_order < 1 || attributes[i].source_order > 3 || attributes[i].flags > 1) return false;
    if (firsts[i] >= count || (i > 0 && firsts[i] <= firsts[i - 1])) return false;
  }
  return true;
}

bool reads_now(World& w, SourceOrder order) {
  return order == SourceOrder::during_call || (order == SourceOrder::any && w.engine.chance(2));
}

}  // namespace

Result cuMemcpyPeerAsync(Pointer to, Context to_context, Pointer from, Context from_context, std::size_t nbytes,
                         Stream stream) {
  const char* name = "cuMemcpyPeerAsync";
  const auto arguments = [&](World& w) {
    return text(" bytes=", nbytes, " from=", w.name_of_memory(from), " of ", w.name_of(from_context),
                " to=", w.name_of_memory(to), " of ", w.name_of(to_context), " stream=", w.name_of(stream));
  };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Place target, source;
    if (nbytes == 0) return success;
    if (const Result failed = find_in_context(w, name, to_context, to, nbytes, true, target)) return failed;
    if (const Result failed = find_in_context(w, name, from_context, from, nbytes, false, source)) return failed;
    return copy(w, name, stream, target, source, one_row(nbytes), lock);
  });
}

Result cuMemcpyBatchAsync(Pointer* to, Pointer* from, std::size_t* nbytes, std::size_t count,
                          CopyAttributes* attributes, std::size_t* firsts, std::size_t n, std::size_t* failed_at,
                          Stream handle) {
  const char* name = "cuMemcpyBatchAsync";
  const auto arguments = [&](World& w) { return text(" copies=", count, " stream=", w.name_of(handle)); };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Stream stream = nullptr;
    if (failed_at != nullptr) *failed_at = no_index;
    if (to == nullptr || from == nullptr || nbytes == nullptr || count == 0) return invalid_value;
    if (!are_valid(attributes, firsts, n, count) || count > w.settings.batch_limit) return invalid_value;
    if (const Result failed = w.identify(handle, stream); failed != success) return failed;
    if (stream->is_legacy) return invalid_value;
    if (stream->capture != nullptr) return capture_unsupported;  // and the capture goes on without these copies
    std::vector<Operation> operations;
    std::size_t group = 0;
    for (std::size_t i = 0; i < count; ++i) {
      while (group + 1 < n && firsts[group + 1] <= i) ++group;
      Place target, source;
      const auto fails = [&](Result failed) {
        return failed_at != nullptr && failed ? (*failed_at = i, failed) : failed;
      };
      if (const Result failed = fails(find_anywhere(w, name, to[i], nbytes[i], true, target))) return failed;
      if (const Result failed = fails(find_anywhere(w, name, from[i], nbytes[i], false, source))) return failed;
      const bool now = reads_now(w, SourceOrder{attributes[group].source_order}) && source.access.allocation == 0;
      operations.push_back(copy_operation(text(name, " in ", stream->name), target, source, one_row(nbytes[i]), now));
    }
    const auto before = w.tail_of(stream);
    Operation end;
    end.name = text("end of a batch in ", stream->name);
    for (Operation& operation : operations) {  // in any order among each other
      operation.after = before;
      operation.context_id = stream->context_id;
      if (operation.accepted) operation.accepted();
      end.after.push_back(w.engine.enqueue(std::move(operation), lock));
    }
    w.submit(stream, std::move(end), lock);
    return success;
  });
}

Result cuStreamWriteValue32(Stream handle, Pointer to, std::uint32_t value, unsigned flags) {
  const char* name = "cuStreamWriteValue32";
  const auto arguments = [&](World& w) {
    return text(" value=", value, " to=", w.name_of_memory(to), " stream=", w.name_of(handle));
  };
  return call(name, Needs::context, arguments, [&](World& w, Lock& lock) {
    Place target;
    Stream stream = nullptr;
    if (!w.settings.stream_writes_supported) return not_supported;
    if (flags != 0 || to % sizeof(value) != 0) return invalid_value;
    if (const Result failed = find_device(w, name, to, sizeof(value), true, target); failed != success) return failed;
    if (const Result failed = w.resolve(handle, stream); failed != success) return failed;
    Operation operation;
    operation.name = text(name, " in ", stream->name);
    operation.accesses = {target.access};
    operation.body = [at = target.address, value] {
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(at), value, __ATOMIC_RELEASE);  // behind what came before
    };
    w.submit(stream, std::move(operation), lock);
    return success;
  });
}

}  // namespace fake
