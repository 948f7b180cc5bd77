// Many pieces of very different sizes into one block of memory, or back.
#pragma once

#include "kernels/arguments.hpp"
#include "kernels/element_type.hpp"

namespace ferry::gpu {

// What a table in device-readable memory holds. Pieces are in the order of `first`.
struct Piece {
  Address address;       // of the piece: the source of a gather, the destination of a scatter
  std::uint64_t offset;  // bytes into the block
  std::uint64_t extent;  // bytes; elements where there is a cast
  std::uint64_t first;   // units of the pieces before: see piece_units()
  Cast cast;             // no_cast moves bytes
  std::uint16_t unused;
  std::uint32_t unused2;
};
static_assert(sizeof(Piece) == 40);

inline constexpr std::uint32_t max_inline_pieces = 176;

// Pieces in the arguments themselves: offsets, extents and units below 2^32.
struct InlinePieces {
  Address address[max_inline_pieces];
  std::uint32_t offset[max_inline_pieces];
  std::uint32_t extent[max_inline_pieces];
  std::uint32_t first[max_inline_pieces];
  Cast cast[max_inline_pieces];
};

struct PieceTable {
  Address pieces;  // Piece[count]
};

// The block; of kernels with slots, offsets count from a slot's payload instead.
struct GatherHead {
  Address block;
  std::uint64_t units;  // of all pieces
  std::uint64_t count;  // pieces
};

struct GatherInlineArgs {
  GatherHead head;
  InlinePieces pieces;
};
struct GatherTableArgs {
  GatherHead head;
  PieceTable pieces;
};
struct GatherStoreInlineArgs {
  GatherHead head;
  Signal signal;
  InlinePieces pieces;
};
struct GatherStoreTableArgs {
  GatherHead head;
  Signal signal;
  PieceTable pieces;
};
struct GatherSlotInlineArgs {
  GatherHead head;
  Slots slots;
  InlinePieces pieces;
};
struct GatherSlotTableArgs {
  GatherHead head;
  Slots slots;
  PieceTable pieces;
};
static_assert(is_argument<GatherInlineArgs> && is_argument<GatherTableArgs> && is_argument<GatherStoreInlineArgs> &&
              is_argument<GatherStoreTableArgs> && is_argument<GatherSlotInlineArgs> &&
              is_argument<GatherSlotTableArgs>);

// How much work a piece is: windows of 16 bytes of what is written, and one more for a piece that begins within one;
// elements where there is a cast.
constexpr std::uint64_t piece_units(std::uint64_t extent, Cast cast) noexcept {
  if (is_cast(cast)) return extent;
  return extent == 0 ? 0 : (extent + 15) / 16 + 1;
}

}  // namespace ferry::gpu
