#include "host/move_row.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ferry {
namespace {

template <std::size_t nbytes>
void move_items(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                std::int64_t count) noexcept {
  constexpr auto packed = static_cast<std::int64_t>(nbytes);
  if (to_step == packed && from_step == packed) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * nbytes);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step) {
    // Through a local, so that the compiler need not fear that the two overlap.
    std::array<std::byte, nbytes> item;
    std::memcpy(item.data(), from, nbytes);
    std::memcpy(to, item.data(), nbytes);
  }
}

template <std::size_t parts, std::size_t part_nbytes>
void swap_items(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step) {
    std::array<std::byte, parts * part_nbytes> item;
    std::memcpy(item.data(), from, item.size());
    for (std::size_t part = 0; part < parts; ++part) {
      std::byte* first = item.data() + part * part_nbytes;
      std::reverse(first, first + part_nbytes);
    }
    std::memcpy(to, item.data(), item.size());
  }
}

void move_booleans(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                   std::int64_t count) noexcept {
  for (std::int64_t i = 0; i < count; ++i, to += to_step, from += from_step) {
    *to = *from != std::byte{0} ? std::byte{1} : std::byte{0};
  }
}

}  // namespace

MoveRow row_mover(DType dtype, bool swap) noexcept {
  const DTypeInfo& type = info(dtype);
  if (dtype == DType::bool_) return move_booleans;
  if (type.value_bits * type.elements_per_item < type.itemsize * 8) return nullptr;
  const bool complex = type.kind == Kind::complex;
  switch (type.itemsize) {
    case 1:
      return move_items<1>;
    case 2:
      return swap ? swap_items<1, 2> : move_items<2>;
    case 4:
      return !swap ? move_items<4> : complex ? swap_items<2, 2> : swap_items<1, 4>;
    case 8:
      return !swap ? move_items<8> : complex ? swap_items<2, 4> : swap_items<1, 8>;
    default:
      return swap ? swap_items<2, 8> : move_items<16>;
  }
}

}  // namespace ferry
