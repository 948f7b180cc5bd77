#include "transfer/driver_copy.hpp"

#include "cuda/driver_error.hpp"

namespace ferry {
namespace {

std::uintptr_t moved(std::uintptr_t address, std::int64_t offset) noexcept {
  return address + static_cast<std::uintptr_t>(offset);  // unsigned arithmetic wraps as it should
}

void enqueue_row(const cuda::Functions& functions, CopyKind kind, std::uintptr_t to, std::uintptr_t from,
                 std::size_t nbytes, cuda::CUstream stream) {
  switch (kind) {
    case CopyKind::to_host:
      cuda::check(functions, functions.cuMemcpyDtoHAsync(reinterpret_cast<void*>(to), from, nbytes, stream),
                  "cuMemcpyDtoHAsync");
      return;
    case CopyKind::to_device:
      cuda::check(functions, functions.cuMemcpyHtoDAsync(to, reinterpret_cast<const void*>(from), nbytes, stream),
                  "cuMemcpyHtoDAsync");
      return;
    case CopyKind::on_device:
      cuda::check(functions, functions.cuMemcpyDtoDAsync(to, from, nbytes, stream), "cuMemcpyDtoDAsync");
      return;
  }
}

}  // namespace

void enqueue_copy(const cuda::Functions& functions, CopyKind kind, const CopyEnds& ends, const Move& move,
                  cuda::CUstream stream) {
  const std::uintptr_t to = moved(ends.destination, move.destination_offset);
  const std::uintptr_t from = moved(ends.source, move.source_offset);
  if (move.rows == 1) {
    enqueue_row(functions, kind, to, from, static_cast<std::size_t>(move.width_nbytes), stream);
    return;
  }
  cuda::Memcpy2D rows{};
  rows.width_nbytes = static_cast<std::size_t>(move.width_nbytes);
  rows.height = static_cast<std::size_t>(move.rows);
  rows.src_pitch = static_cast<std::size_t>(move.source_pitch);
  rows.dst_pitch = static_cast<std::size_t>(move.destination_pitch);
  if (kind == CopyKind::to_device) {
    rows.src_memory_type = cuda::memorytype_host;
    rows.src_host = reinterpret_cast<const void*>(from);
  } else {
    rows.src_memory_type = cuda::memorytype_device;
    rows.src_device = from;
  }
  if (kind == CopyKind::to_host) {
    rows.dst_memory_type = cuda::memorytype_host;
    rows.dst_host = reinterpret_cast<void*>(to);
  } else {
    rows.dst_memory_type = cuda::memorytype_device;
    rows.dst_device = to;
  }
  cuda::check(functions, functions.cuMemcpy2DAsync(&rows, stream), "cuMemcpy2DAsync");
}

}  // namespace ferry
