// Rows of any dtype to blocks of a few carrier types, and back.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>

#include "core/dtype.hpp"

namespace ferry {

// The type that holds every value of a dtype exactly. Booleans and unsigned integers travel as uint64.
enum class Carrier : std::uint8_t { int64, uint64, float64, complex128 };

// Even, so that a pair of packed elements never straddles two blocks.
inline constexpr std::int64_t block_elements = 256;

// Calls visit(first, count) for the blocks of a row.
template <class Visit>
void for_each_block(std::int64_t extent, Visit&& visit) {
  for (std::int64_t first = 0; first < extent; first += block_elements) {
    visit(first, std::min(block_elements, extent - first));
  }
}

// Room for one block of any carrier type.
class Block {
 public:
  template <class T>
  [[nodiscard]] T* as() noexcept {
    return reinterpret_cast<T*>(bytes_.data());
  }
  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    return reinterpret_cast<const T*>(bytes_.data());
  }

 private:
  alignas(16) std::array<std::byte, static_cast<std::size_t>(block_elements) * sizeof(std::complex<double>)> bytes_;
};

// `count` elements, at most block_elements, `step` bytes from one item to the next. The row may be misaligned. Packed
// pairs come low nibble first, and their count of elements is even.
using LoadRow = void (*)(const std::byte* row, std::int64_t step, std::int64_t count, Block& block);
using StoreRow = void (*)(std::byte* row, std::int64_t step, std::int64_t count, const Block& block);

struct ElementIO {
  Carrier carrier;
  LoadRow load;
  StoreRow store;  // integers keep their low bits; floats round once, to nearest even
};

[[nodiscard]] ElementIO element_io(DType dtype, bool byte_swapped) noexcept;

}  // namespace ferry
