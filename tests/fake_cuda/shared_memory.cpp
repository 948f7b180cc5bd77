#include "shared_memory.hpp"

#include <sys/mman.h>

#include <cstring>

#include "report.hpp"

namespace fake {
namespace {

constexpr unsigned char shared_poison = 0xCB;
constexpr std::size_t shared_guard = 4096, gap = 64;

}  // namespace

SharedMemory::SharedMemory() : bytes_(room) {
  void* memory = mmap(nullptr, room + shared_guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) __builtin_trap();
  base_ = reinterpret_cast<std::uintptr_t>(memory);
  mprotect(reinterpret_cast<void*>(base_ + room), shared_guard, PROT_NONE);
}

void SharedMemory::begin_block() {
  std::memset(reinterpret_cast<void*>(base_), shared_poison, used_);
  variables_.clear();
  used_ = 0;
  ++epoch_;
}

void* SharedMemory::place(const void* key, std::size_t nbytes, std::size_t alignment) {
  for (const Variable& one : variables_) {
    if (one.key == key) return reinterpret_cast<void*>(base_ + one.begin);
  }
  const std::size_t begin = (used_ + alignment - 1) / alignment * alignment;
  if (nbytes > room || begin > room - nbytes) return nullptr;
  variables_.push_back({key, begin, begin + nbytes});
  used_ = begin + nbytes + gap;
  std::memset(reinterpret_cast<void*>(base_ + begin), shared_poison, nbytes);
  return reinterpret_cast<void*>(base_ + begin);
}

std::string SharedMemory::touch(std::uintptr_t address, std::size_t nbytes, bool writes, std::uint32_t thread) {
  const std::size_t begin = address - base_;
  bool inside = false;
  for (const Variable& one : variables_) inside = inside || (begin >= one.begin && begin + nbytes <= one.end);
  if (!inside) return text(writes ? "wrote " : "read ", nbytes, " bytes of shared memory that nothing is declared at");
  for (std::size_t i = begin; i < begin + nbytes; ++i) {
    Byte& byte = bytes_[i];
    if (byte.written == epoch_ && byte.writer != thread) {
      return writes ? "wrote shared memory that another thread wrote since the last barrier"
                    : "read shared memory that another thread wrote since the last barrier";
    }
    if (writes && byte.read == epoch_ && (byte.many_readers || byte.reader != thread)) {
      return "wrote shared memory that another thread read since the last barrier";
    }
    if (writes) {
      byte.written = epoch_;
      byte.writer = static_cast<std::uint16_t>(thread);
    } else {
      byte.many_readers = byte.read == epoch_ && (byte.many_readers || byte.reader != thread);
      byte.reader = static_cast<std::uint16_t>(thread);
      byte.read = epoch_;
    }
  }
  return {};
}

}  // namespace fake
