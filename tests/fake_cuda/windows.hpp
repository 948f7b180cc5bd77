// The device's view of registered host memory: other addresses, open only to kernels. A page is filled from the host's
// at a kernel's first touch; what the kernel stores there reaches the host by the store log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fake {

class Windows {
 public:
  Windows();
  /// A window for host memory; 0 when there is no room left. Its address is that of `begin`.
  std::uintptr_t make(std::uintptr_t begin, std::size_t nbytes);
  bool contains(std::uintptr_t address) const { return address - base_ < size_; }
  void forget_all() { next_ = base_; }

  /// Fill a page of a window and let the device touch it.
  static void open_page(std::uintptr_t page, std::uintptr_t host_page);
  static void close_page(std::uintptr_t page);

 private:
  std::uintptr_t base_ = 0, next_ = 0;
  std::size_t size_ = 0;
};

}  // namespace fake
