// What a running kernel may touch: every access is judged before it happens. Allowed are live allocations of its
// device, registered host memory, shared memory, its own stack, and constants. Exact to the byte, and by alignment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared_memory.hpp"
#include "store_log.hpp"
#include "world.hpp"

namespace fake {

/// The lock of the driver, for an operation that may hold it already.
class LockForOperation {
 public:
  LockForOperation();
  ~LockForOperation();
  LockForOperation(const LockForOperation&) = delete;
  LockForOperation& operator=(const LockForOperation&) = delete;

 private:
  bool held_;
};

class KernelMemory {
 public:
  KernelMemory(std::string kernel, Device device);
  /// Closes what was opened, and records what was wrong.
  ~KernelMemory();
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  /// False if the access cannot go on: the kernel must end here.
  bool touch(KernelThread by, std::uintptr_t address, std::size_t nbytes, bool writes, bool aligned);
  bool store_release(KernelThread by, std::uint64_t* at, std::uint64_t value);
  /// Once for each kind, for that is enough to know.
  void wrong(const std::string& what);
  /// Where host memory is seen by the device, for a word among a kernel's arguments.
  std::uintptr_t translated(std::uintptr_t word) const;

  StoreLog log;
  SharedMemory& shared;              ///< one for all, since kernels run one at a time
  Result failure = illegal_address;  ///< of a kernel that ended

 private:
  struct Range {
    std::uintptr_t begin, end;
    u64 number;
    bool opened;
  };
  struct Window {
    std::uintptr_t begin, end, host;
    u64 number;
    bool writable;
  };

  bool touch_device(std::uintptr_t address, std::size_t nbytes, bool writes);
  bool touch_window(KernelThread by, std::uintptr_t address, std::size_t nbytes, bool writes, bool release);
  bool touch_other(std::uintptr_t address, std::size_t nbytes, bool writes);
  bool open_pages(std::uintptr_t address, std::size_t nbytes, const Window& window);

  std::string kernel_;
  Device device_;
  bool same_pointers_;
  std::vector<Range> ranges_;
  std::vector<Window> windows_;
  std::vector<std::uintptr_t> pages_, beside_;
  std::uintptr_t last_begin_ = 0, last_end_ = 0, last_page_ = 0;
  std::vector<std::string> wrongs_;
};

}  // namespace fake
