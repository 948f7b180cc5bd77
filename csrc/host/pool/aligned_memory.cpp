#include "host/pool/aligned_memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "host/pool/block.hpp"

namespace ferry {
namespace {

// std::aligned_alloc takes twice as long as malloc. What malloc returned is kept right before the memory.
constexpr std::size_t overhead = block_alignment + sizeof(void*);

std::byte* first_aligned(std::byte* raw) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(raw) + sizeof(void*);
  return raw + sizeof(void*) + (block_alignment - address % block_alignment) % block_alignment;
}

std::byte* raw_of(const std::byte* data) noexcept {
  std::byte* raw = nullptr;
  std::memcpy(&raw, data - sizeof(void*), sizeof(raw));
  return raw;
}

void remember(std::byte* data, std::byte* raw) noexcept { std::memcpy(data - sizeof(void*), &raw, sizeof(raw)); }

bool too_large(std::size_t nbytes) noexcept { return nbytes > std::numeric_limits<std::size_t>::max() - overhead; }

}  // namespace

std::byte* aligned_new(std::size_t nbytes) noexcept {
  auto* raw = too_large(nbytes) ? nullptr : static_cast<std::byte*>(std::malloc(nbytes + overhead));
  if (raw == nullptr) return nullptr;
  std::byte* data = first_aligned(raw);
  remember(data, raw);
  return data;
}

std::byte* aligned_resize(std::byte* data, std::size_t nbytes) noexcept {
  if (too_large(nbytes)) return nullptr;
  const std::ptrdiff_t offset = data - raw_of(data);
  auto* raw = static_cast<std::byte*>(std::realloc(raw_of(data), nbytes + overhead));
  if (raw == nullptr) return nullptr;
  std::byte* moved = first_aligned(raw);
  if (moved != raw + offset) std::memmove(moved, raw + offset, nbytes);
  remember(moved, raw);
  return moved;
}

void aligned_delete(std::byte* data) noexcept {
  if (data != nullptr) std::free(raw_of(data));
}

}  // namespace ferry
