// Builds the arguments of gathers and scatters.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/grid.hpp"

namespace ferry::gpu {

// Pieces in the order in which they are added; empty ones are left out.
class PieceList {
 public:
  // `extent` in bytes, or in elements where there is a cast. Addresses and offsets of a cast are multiples of
  // element_alignment().
  void add(Address address, std::uint64_t offset, std::uint64_t extent, Cast cast = no_cast);

  [[nodiscard]] bool fits_inline() const noexcept;
  [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }  // the table, as it is copied
  [[nodiscard]] std::uint64_t units() const noexcept { return units_; }
  [[nodiscard]] std::uint64_t table_nbytes() const noexcept { return pieces_.size() * sizeof(Piece); }

 private:
  std::vector<Piece> pieces_;
  std::uint64_t units_ = 0;
  bool narrow_ = true;  // everything fits 32 bits
};

// `table`: where a copy of pieces() lies in device-readable memory; not looked at where fits_inline() holds.
[[nodiscard]] Launch gather_launch(const PieceList& list, Address block, Address table, BlockLimit limit);
[[nodiscard]] Launch scatter_launch(const PieceList& list, Address block, Address table, BlockLimit limit);
[[nodiscard]] Launch gather_store_launch(const PieceList& list, Address block, Address table, const Signal& signal,
                                         BlockLimit limit = link_bound);
// Into the slot that the counter in device memory names, so that a captured launch can be repeated.
[[nodiscard]] Launch gather_slot_launch(const PieceList& list, const Slots& slots, Address table,
                                        BlockLimit limit = link_bound);

}  // namespace ferry::gpu
