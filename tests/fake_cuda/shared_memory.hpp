// The memory that the threads of one block share. Between two barriers nobody may touch what another thread wrote, nor
// write what another one touched. What nobody wrote is poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fake {

class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block();
  void pass_barrier() { ++epoch_; }
  /// The place of a declaration; null when there is no room.
  void* place(const void* key, std::size_t nbytes, std::size_t alignment);
  bool contains(std::uintptr_t address) const { return address - base_ < room; }
  /// What is wrong with the access, empty if nothing.
  std::string touch(std::uintptr_t address, std::size_t nbytes, bool writes, std::uint32_t thread);

  static constexpr std::size_t room = std::size_t{48} << 10;  // what a kernel may declare

 private:
  struct Variable {
    const void* key;
    std::size_t begin, end;
  };
  struct Byte {
    std::uint64_t written = 0, read = 0;  ///< in which epoch last
    std::uint16_t writer = 0, reader = 0;
    bool many_readers = false;
  };

  std::uintptr_t base_ = 0;
  std::vector<Variable> variables_;
  std::vector<Byte> bytes_;
  std::size_t used_ = 0;
  std::uint64_t epoch_ = 1;
};

}  // namespace fake
