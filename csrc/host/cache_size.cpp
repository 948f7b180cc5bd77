#include "host/cache_size.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>

namespace ferry {
namespace {

constexpr std::int64_t unknown_nbytes = std::int64_t{16} << 20;

// What the first processor sees. sysconf adds up the caches of chips whose other parts a virtual machine does not have.
std::int64_t from_system() noexcept {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      std::fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r"), close);
  long kib = 0;
  if (file == nullptr || std::fscanf(file.get(), "%ldK", &kib) != 1) return 0;
  return std::int64_t{kib} * 1024;
}

}  // namespace

std::int64_t last_cache_nbytes() noexcept {
  if (const std::int64_t nbytes = from_system(); nbytes > 0) return nbytes;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  if (const std::int64_t nbytes = sysconf(_SC_LEVEL3_CACHE_SIZE); nbytes > 0) return nbytes;
#endif
  return unknown_nbytes;
}

}  // namespace ferry
