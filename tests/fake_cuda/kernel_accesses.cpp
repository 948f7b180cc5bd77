// The calls that the compiler puts before each access of a kernel: see kernels.cpp.
#include "kernel_accesses.hpp"

#include <cstring>

#define ACCESS(nbytes)                                                       \
  HOOK void fake_kernel_read##nbytes(void* at) {                             \
    fake::touch(reinterpret_cast<std::uintptr_t>(at), nbytes, false, true);  \
  }                                                                          \
  HOOK void fake_kernel_write##nbytes(void* at) {                            \
    fake::touch(reinterpret_cast<std::uintptr_t>(at), nbytes, true, true);   \
  }                                                                          \
  HOOK void fake_kernel_unaligned_read##nbytes(void* at) {                   \
    fake::touch(reinterpret_cast<std::uintptr_t>(at), nbytes, false, false); \
  }                                                                          \
  HOOK void fake_kernel_unaligned_write##nbytes(void* at) {                  \
    fake::touch(reinterpret_cast<std::uintptr_t>(at), nbytes, true, false);  \
  }
#define HOOK extern "C"

ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

HOOK void fake_kernel_read_range(void* at, std::size_t nbytes) {
  if (nbytes > 0) fake::touch(reinterpret_cast<std::uintptr_t>(at), nbytes, false, false);
}
HOOK void fake_kernel_write_range(void* at, std::size_t nbytes) {
  if (nbytes > 0) fake::touch(reinterpret_cast<std::uintptr_t>(at), nbytes, true, false);
}
HOOK void* fake_kernel_memcpy(void* to, const void* from, std::size_t nbytes) {
  fake_kernel_read_range(const_cast<void*>(from), nbytes);
  fake_kernel_write_range(to, nbytes);
  return std::memcpy(to, from, nbytes);
}
HOOK void* fake_kernel_memset(void* to, int value, std::size_t nbytes) {
  fake_kernel_write_range(to, nbytes);
  return std::memset(to, value, nbytes);
}
HOOK void fake_kernel_nothing(void*) {}
