// Copies past the caches: a destination that is not read soon need not be fetched before it is written.
#include "host/kernels/stream.hpp"

#include <algorithm>
#include <cstring>

#include "host/kernels/families.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

constexpr std::int64_t line_nbytes = 64;

using Wide [[gnu::vector_size(vector_nbytes)]] = std::uint64_t;

// One cache line, to an aligned address.
inline void stream_line(std::byte* to, const std::byte* from) noexcept {
  for (int at = 0; at < static_cast<int>(line_nbytes); at += vector_nbytes) {
    Wide value;
    std::memcpy(&value, from + at, sizeof(value));
    stream_vector(to + at, value);
  }
}

}  // namespace

void stream_copy(std::byte* to, const std::byte* from, std::int64_t nbytes) noexcept {
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % line_nbytes);
  const std::int64_t head = std::min(nbytes, misaligned == 0 ? 0 : line_nbytes - misaligned);
  std::memcpy(to, from, static_cast<std::size_t>(head));
  std::int64_t at = head;
  for (; at + line_nbytes <= nbytes; at += line_nbytes) stream_line(to + at, from + at);
  std::memcpy(to + at, from + at, static_cast<std::size_t>(nbytes - at));
}

}  // namespace ferry::inline FERRY_LEVEL
