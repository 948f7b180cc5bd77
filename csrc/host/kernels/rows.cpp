// Copies short rows, many by one call: to call for each would take as long as to copy it.
#include <array>
#include <cstring>
#include <utility>

#include "host/kernels/families.hpp"

namespace ferry::inline FERRY_LEVEL {
namespace {

using Wide [[gnu::vector_size(vector_nbytes)]] = std::uint64_t;

inline void move_vector(std::byte* to, const std::byte* from) noexcept {
  Wide value;
  std::memcpy(&value, from, sizeof(value));
  std::memcpy(to, &value, sizeof(value));
}

// Rows of so many vectors, the last of which begins where the row's end wants it: within the one before.
template <std::size_t vectors>
void copy_rows_of(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t rows,
                  std::int64_t nbytes) noexcept {
  const std::int64_t last = nbytes - vector_nbytes;
  for (; rows > 0; --rows, to += to_step, from += from_step) {
#pragma GCC unroll 32
    for (std::size_t k = 0; k + 1 < vectors; ++k) move_vector(to + k * vector_nbytes, from + k * vector_nbytes);
    move_vector(to + last, from + last);
  }
}

template <std::size_t... vectors>
constexpr std::array<CopyRows, sizeof...(vectors)> by_vectors(std::index_sequence<vectors...>) noexcept {
  return {copy_rows_of<vectors + 1>...};
}

constexpr auto loops = by_vectors(std::make_index_sequence<longest_short_row_nbytes / vector_nbytes>{});

}  // namespace

void copy_rows(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step, std::int64_t rows,
               std::int64_t nbytes) noexcept {
  if (nbytes >= vector_nbytes && nbytes <= longest_short_row_nbytes) {
    const std::int64_t vectors = (nbytes + vector_nbytes - 1) / vector_nbytes;
    return loops[static_cast<std::size_t>(vectors - 1)](to, to_step, from, from_step, rows, nbytes);
  }
  for (; rows > 0; --rows, to += to_step, from += from_step) std::memcpy(to, from, static_cast<std::size_t>(nbytes));
}

}  // namespace ferry::inline FERRY_LEVEL
