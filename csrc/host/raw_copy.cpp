#include "host/raw_copy.hpp"

#include <algorithm>
#include <cstring>

#include "host/kernels/kernels.hpp"
#include "host/parallel.hpp"

namespace ferry {

void raw_copy(std::byte* to, const std::byte* from, std::int64_t nbytes, bool non_temporal, int threads) {
  constexpr std::int64_t piece_nbytes = 256 * 1024;
  const StreamCopy stream = kernels().stream_copy;
  parallel_for(threads, (nbytes + piece_nbytes - 1) / piece_nbytes, [=](std::int64_t piece) noexcept {
    const std::int64_t first = piece * piece_nbytes;
    const std::int64_t length = std::min(piece_nbytes, nbytes - first);
    if (non_temporal) {
      stream(to + first, from + first, length);
      stream_fence();
    } else {
      std::memcpy(to + first, from + first, static_cast<std::size_t>(length));
    }
  });
}

}  // namespace ferry
