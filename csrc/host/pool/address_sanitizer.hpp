// In builds with AddressSanitizer: reports whoever touches memory that is not on loan.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define FERRY_HAS_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FERRY_HAS_ADDRESS_SANITIZER
#endif
#endif

#ifdef FERRY_HAS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace ferry {

inline void forbid_access([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t nbytes) noexcept {
#ifdef FERRY_HAS_ADDRESS_SANITIZER
  __asan_poison_memory_region(data, nbytes);
#endif
}

inline void allow_access([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t nbytes) noexcept {
#ifdef FERRY_HAS_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(data, nbytes);
#endif
}

}  // namespace ferry
