// Chooses the loop for a pair of dtypes.
#include <algorithm>
#include <cstdlib>

#include "host/kernels/cast_loop.hpp"

namespace ferry::inline FERRY_LEVEL {

namespace {

constexpr std::int64_t line_nbytes = 64;
constexpr std::int64_t gathered_nbytes = 4096;  // of the source, for one round of gathering and converting

// Brings what is gathered next into a cache while values are converted and written, when nothing else would be read.
void fetch(const std::byte* from, std::int64_t step, std::int64_t count) noexcept {
  const std::int64_t nbytes = step * count;
  if (step > 0 && step <= line_nbytes) {
    for (std::int64_t at = 0; at < nbytes; at += line_nbytes) __builtin_prefetch(from + at, 0, 3);
  }
}

MoveRow move_of(std::int64_t itemsize) noexcept { return moves[static_cast<std::size_t>(itemsize - 1)]; }

}  // namespace

void cast_in_steps(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                   std::int64_t count, const CastSteps& steps) noexcept {
  constexpr std::int64_t most = 512;
  alignas(64) std::byte sources[16 * most];
  alignas(64) std::byte middles[8 * most];
  alignas(64) std::byte results[16 * most];
  const std::int64_t apart = std::max<std::int64_t>(std::abs(from_step), 1);
  const std::int64_t chunk = std::clamp<std::int64_t>(gathered_nbytes / apart / 32 * 32, 64, most);
  for (std::int64_t at = 0; at < count; at += chunk) {
    const std::int64_t length = std::min(chunk, count - at);
    const std::byte* in = from + at * from_step;
    std::byte* out = to + at * to_step;
    if (from_step != steps.from_size) {
      move_of(steps.from_size)(sources, steps.from_size, in, from_step, length);
      fetch(in + length * from_step, from_step, length);
      in = sources;
    }
    if (to_step != steps.to_size) out = results;
    if (steps.second == nullptr) {
      steps.first(out, in, length);
    } else {
      steps.first(middles, in, length);
      steps.second(out, middles, length);
    }
    if (to_step != steps.to_size) move_of(steps.to_size)(to + at * to_step, to_step, results, steps.to_size, length);
  }
}

MoveRow cast_row(DType to, DType from) noexcept {
  if (to == from) return nullptr;
  for (const auto family :
       {cast_integers, cast_to_floats, cast_from_floats, cast_to_small, cast_from_small, cast_complex}) {
    if (const MoveRow row = family(to, from); row != nullptr) return row;
  }
  return nullptr;
}

}  // namespace ferry::inline FERRY_LEVEL
