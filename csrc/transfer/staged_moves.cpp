#include "transfer/staged_moves.hpp"

namespace ferry {
namespace {

// Packed in the order of the axes of `like`, and backwards where those run backwards.
struct Packed {
  Layout layout;
  std::int64_t offset = 0;  // of the first element in the block
};

Packed packed_like(const Layout& like) {
  Packed packed{like, 0};
  packed.layout.strides = packed_strides(like, Order::keep, like.itemsize);
  for (int i = 0; i < like.ndim(); ++i) {
    if (like.strides[i] >= 0) continue;
    packed.offset += (like.shape[i] - 1) * packed.layout.strides[i];
    packed.layout.strides[i] = -packed.layout.strides[i];
  }
  return packed;
}

std::optional<StagedMoves> through(const Packed& slot, const Layout& source, const Layout& destination,
                                   std::size_t most) {
  auto into = moves_between(source, slot.layout, most);
  auto out_of = moves_between(slot.layout, destination, most);
  if (!into || !out_of) return std::nullopt;
  for (Move& move : *into) move.destination_offset += slot.offset;
  for (Move& move : *out_of) move.source_offset += slot.offset;
  return StagedMoves{std::move(*into), std::move(*out_of)};
}

std::size_t count_of(const StagedMoves& moves) { return moves.into.size() + moves.out_of.size(); }

}  // namespace

std::optional<StagedMoves> staged_moves(const Layout& source, const Layout& destination, std::size_t most) {
  auto like_destination = through(packed_like(destination), source, destination, most);
  if (like_destination && count_of(*like_destination) == 2) return like_destination;
  auto like_source = through(packed_like(source), source, destination, most);
  if (!like_source) return like_destination;
  if (!like_destination || count_of(*like_source) < count_of(*like_destination)) return like_source;
  return like_destination;
}

}  // namespace ferry
