#include "kernels/piece_list.hpp"

#include <cstddef>
#include <limits>

namespace ferry::gpu {
namespace {

constexpr std::uint32_t per_thread = 4;

InlinePieces inline_pieces(const PieceList& list) noexcept {
  InlinePieces pieces{};
  std::size_t i = 0;
  for (const Piece& piece : list.pieces()) {
    pieces.address[i] = piece.address;
    pieces.offset[i] = static_cast<std::uint32_t>(piece.offset);
    pieces.extent[i] = static_cast<std::uint32_t>(piece.extent);
    pieces.first[i] = static_cast<std::uint32_t>(piece.first);
    pieces.cast[i] = piece.cast;
    ++i;
  }
  return pieces;
}

GatherHead head_of(const PieceList& list, Address block) noexcept {
  return {block, list.units(), list.pieces().size()};
}

Grid grid_of(const PieceList& list, BlockLimit limit) noexcept { return grid_for(list.units(), per_thread, limit); }

Launch plain_launch(Kernel with_inline, Kernel with_table, const PieceList& list, Address block, Address table,
                    BlockLimit limit) noexcept {
  const Grid grid = grid_of(list, limit);
  if (!list.fits_inline()) return {with_table, grid, GatherTableArgs{head_of(list, block), {table}}};
  return {with_inline, grid, GatherInlineArgs{head_of(list, block), inline_pieces(list)}};
}

}  // namespace

void PieceList::add(Address address, std::uint64_t offset, std::uint64_t extent, Cast cast) {
  if (extent == 0) return;
  constexpr std::uint64_t limit = std::numeric_limits<std::uint32_t>::max();
  pieces_.push_back({address, offset, extent, units_, cast, 0, 0});
  units_ += piece_units(extent, cast);
  narrow_ = narrow_ && offset <= limit && extent <= limit && units_ <= limit;
}

bool PieceList::fits_inline() const noexcept { return narrow_ && pieces_.size() <= max_inline_pieces; }

Launch gather_launch(const PieceList& list, Address block, Address table, BlockLimit limit) {
  return plain_launch(Kernel::gather_inline, Kernel::gather_table, list, block, table, limit);
}

Launch scatter_launch(const PieceList& list, Address block, Address table, BlockLimit limit) {
  return plain_launch(Kernel::scatter_inline, Kernel::scatter_table, list, block, table, limit);
}

Launch gather_store_launch(const PieceList& list, Address block, Address table, const Signal& signal,
                           BlockLimit limit) {
  const Grid grid = grid_of(list, limit);
  if (!list.fits_inline()) {
    return {Kernel::gather_store_table, grid, GatherStoreTableArgs{head_of(list, block), signal, {table}}};
  }
  return {Kernel::gather_store_inline, grid, GatherStoreInlineArgs{head_of(list, block), signal, inline_pieces(list)}};
}

Launch gather_slot_launch(const PieceList& list, const Slots& slots, Address table, BlockLimit limit) {
  const Grid grid = grid_of(list, limit);
  if (!list.fits_inline()) {
    return {Kernel::gather_slot_table, grid, GatherSlotTableArgs{head_of(list, 0), slots, {table}}};
  }
  return {Kernel::gather_slot_inline, grid, GatherSlotInlineArgs{head_of(list, 0), slots, inline_pieces(list)}};
}

}  // namespace ferry::gpu
