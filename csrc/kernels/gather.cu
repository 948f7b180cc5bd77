// Moves pieces into one block of memory, or back. Work is counted in units (see piece_units); a block takes a run of
// units at a time, whatever pieces they belong to, so that large and small pieces keep all blocks equally busy.
#include "kernels/convert.cuh"
#include "kernels/gather.hpp"
#include "kernels/signal.cuh"
#include "kernels/work.cuh"

namespace ferry::gpu {
namespace {

FERRY_DEVICE std::uint64_t first_of(const InlinePieces& pieces, std::uint64_t i) { return pieces.first[i]; }
FERRY_DEVICE Piece piece_at(const InlinePieces& pieces, std::uint64_t i) {
  return {pieces.address[i], pieces.offset[i], pieces.extent[i], pieces.first[i], pieces.cast[i], 0, 0};
}

FERRY_DEVICE Address entry(const PieceTable& table, std::uint64_t i) { return table.pieces + i * sizeof(Piece); }
FERRY_DEVICE std::uint64_t first_of(const PieceTable& table, std::uint64_t i) {
  return load<std::uint64_t>(entry(table, i) + 24);
}
FERRY_DEVICE Piece piece_at(const PieceTable& table, std::uint64_t i) {
  const Address at = entry(table, i);
  return {load<std::uint64_t>(at),
          load<std::uint64_t>(at + 8),
          load<std::uint64_t>(at + 16),
          load<std::uint64_t>(at + 24),
          {load<std::uint8_t>(at + 32), load<std::uint8_t>(at + 33)},
          0,
          0};
}

// The piece that this unit belongs to: the last in [low, high] that does not begin behind it.
template <class Pieces>
FERRY_DEVICE std::uint64_t find(const Pieces& pieces, std::uint64_t low, std::uint64_t high, std::uint64_t unit) {
  while (low < high) {
    const std::uint64_t middle = low + (high - low + 1) / 2;
    if (first_of(pieces, middle) <= unit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

enum class Way { gather, scatter };

template <Way way>
FERRY_DEVICE void move_unit(const Piece& piece, Address block, std::uint64_t unit) {
  const Address there = block + piece.offset;
  const Address to = way == Way::gather ? there : piece.address;
  const Address from = way == Way::gather ? piece.address : there;
  if (is_cast(piece.cast)) {
    convert_element(piece.cast, to + unit * itemsize(static_cast<ElementType>(piece.cast.to)),
                    from + unit * itemsize(static_cast<ElementType>(piece.cast.from)));
  } else {
    copy_window(to, from, piece.extent, unit);
  }
}

template <Way way, class Pieces>
FERRY_DEVICE void move_pieces(const GatherHead& head, const Pieces& pieces, Address block) {
  const std::uint64_t run = std::uint64_t{threads_in_block()} * items_at_once;
  for (std::uint64_t begin = block_index() * run; begin < head.units; begin += blocks_in_grid() * run) {
    const std::uint64_t end = begin + run < head.units ? begin + run : head.units;
    // The same for all threads; their own searches are short then.
    const std::uint64_t low = find(pieces, 0, head.count - 1, begin);
    const std::uint64_t high = find(pieces, low, head.count - 1, end - 1);
    for (std::uint64_t unit = begin + thread_index(); unit < end; unit += threads_in_block()) {
      const Piece piece = piece_at(pieces, find(pieces, low, high, unit));
      move_unit<way>(piece, block, unit - piece.first);
    }
  }
}

// A slot's number is written before the payload and after it. Every thread fences between `begin` and its own stores:
// whoever sees one of them, fences and loads `begin`, finds this launch's number or a later one. `end` follows all
// blocks' stores as in signal.cuh. So equal numbers mean a whole payload. The counter changes when all blocks have
// read it; a later replay runs behind this one.
template <class Pieces>
FERRY_DEVICE void fill_slot(const GatherHead& head, const Slots& slots, const Pieces& pieces) {
  const std::uint64_t number = load<std::uint64_t>(slots.counter) + 1;
  const std::uint64_t slot = number - 1 - slots.by_count.quotient(number - 1) * slots.by_count.divisor;
  const Address header = slots.headers + slot * sizeof(SlotHeader);
  if (thread_index() == 0) store(header, number);
  barrier();
  system_fence();
  move_pieces<Way::gather>(head, pieces, slots.payloads + slot * slots.pitch);
  if (!is_last_to_finish(slots.counter + sizeof(std::uint64_t))) return;
  store(slots.counter, number);
  raise_flag(header + sizeof(std::uint64_t), number);
}

}  // namespace

FERRY_KERNEL(512) ferry_gather_inline(const GatherInlineArgs args) {
  move_pieces<Way::gather>(args.head, args.pieces, args.head.block);
}
FERRY_KERNEL(512) ferry_gather_table(const GatherTableArgs args) {
  move_pieces<Way::gather>(args.head, args.pieces, args.head.block);
}
FERRY_KERNEL(512) ferry_scatter_inline(const GatherInlineArgs args) {
  move_pieces<Way::scatter>(args.head, args.pieces, args.head.block);
}
FERRY_KERNEL(512) ferry_scatter_table(const GatherTableArgs args) {
  move_pieces<Way::scatter>(args.head, args.pieces, args.head.block);
}

FERRY_KERNEL(512) ferry_gather_store_inline(const GatherStoreInlineArgs args) {
  move_pieces<Way::gather>(args.head, args.pieces, args.head.block);
  signal_when_all_stored(args.signal);
}
FERRY_KERNEL(512) ferry_gather_store_table(const GatherStoreTableArgs args) {
  move_pieces<Way::gather>(args.head, args.pieces, args.head.block);
  signal_when_all_stored(args.signal);
}

FERRY_KERNEL(512) ferry_gather_slot_inline(const GatherSlotInlineArgs args) {
  fill_slot(args.head, args.slots, args.pieces);
}
FERRY_KERNEL(512) ferry_gather_slot_table(const GatherSlotTableArgs args) {
  fill_slot(args.head, args.slots, args.pieces);
}

}  // namespace ferry::gpu
