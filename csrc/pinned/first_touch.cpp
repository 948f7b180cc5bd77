#include "pinned/first_touch.hpp"

#include <algorithm>
#include <cstdint>

#include "host/parallel.hpp"
#include "host/pool/block.hpp"

namespace ferry {
namespace {

constexpr std::size_t smallest_page_nbytes = 4096;
constexpr std::size_t parallel_from_nbytes = 4 * huge_page_nbytes;

void touch(std::byte* data, std::size_t nbytes) noexcept {
  for (std::size_t at = 0; at < nbytes; at += smallest_page_nbytes) {
    *static_cast<volatile std::byte*>(data + at) = std::byte{0};
  }
}

}  // namespace

void touch_pages(std::byte* data, std::size_t nbytes) noexcept {
  const int threads = nbytes < parallel_from_nbytes ? 1 : useful_threads(static_cast<std::int64_t>(nbytes));
  const auto pieces = static_cast<std::int64_t>((nbytes + huge_page_nbytes - 1) / huge_page_nbytes);
  parallel_for(threads, pieces, [data, nbytes](std::int64_t piece) noexcept {
    const std::size_t first = static_cast<std::size_t>(piece) * huge_page_nbytes;
    touch(data + first, std::min(huge_page_nbytes, nbytes - first));
  });
}

}  // namespace ferry
