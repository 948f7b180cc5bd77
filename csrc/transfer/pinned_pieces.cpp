#include "transfer/pinned_pieces.hpp"

#include <algorithm>

#include "core/mutation.hpp"

namespace ferry {
namespace {

class Cutter {
 public:
  Cutter(HostEnd end, const std::byte* host, const PieceNbytes& piece_nbytes) noexcept
      : end_(end), host_(host), piece_nbytes_(piece_nbytes) {}

  void cut(const Move& move) {
    const std::int64_t pitch = end_ == HostEnd::source ? move.source_pitch : move.destination_pitch;
    const std::int64_t offset = end_ == HostEnd::source ? move.source_offset : move.destination_offset;
    std::int64_t row = 0;
    while (row < move.rows) {
      const std::int64_t inside = room(offset + row * pitch, (move.rows - row - 1) * pitch + move.width_nbytes);
      if (inside < move.width_nbytes) {
        cut_row(move, row++);
        continue;
      }
      const std::int64_t rows = pitch == 0 ? 1 : std::min(move.rows - row, (inside - move.width_nbytes) / pitch + 1);
      add(move, row, rows, 0, move.width_nbytes);
      row += rows;
    }
  }

  [[nodiscard]] std::vector<Move> take() noexcept { return std::move(parts_); }

 private:
  // Bytes from `offset` on, up to `nbytes`, that lie in one registration; at least 1, whatever is answered.
  [[nodiscard]] std::int64_t room(std::int64_t offset, std::int64_t nbytes) const {
    if (mutated(Mutation::ignore_registration_edge)) return nbytes;
    const std::size_t inside = piece_nbytes_(host_ + offset, static_cast<std::size_t>(nbytes));
    return std::max<std::int64_t>(static_cast<std::int64_t>(inside), 1);
  }

  void cut_row(const Move& move, std::int64_t row) {
    const std::int64_t pitch = end_ == HostEnd::source ? move.source_pitch : move.destination_pitch;
    const std::int64_t offset = (end_ == HostEnd::source ? move.source_offset : move.destination_offset) + row * pitch;
    for (std::int64_t first = 0; first < move.width_nbytes;) {
      const std::int64_t nbytes = room(offset + first, move.width_nbytes - first);
      add(move, row, 1, first, nbytes);
      first += nbytes;
    }
  }

  void add(const Move& move, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t nbytes) {
    Move part = move;
    part.source_offset += row * move.source_pitch + first;
    part.destination_offset += row * move.destination_pitch + first;
    part.width_nbytes = nbytes;
    part.rows = rows;
    if (rows == 1) part.source_pitch = part.destination_pitch = 0;
    parts_.push_back(part);
  }

  HostEnd end_;
  const std::byte* host_;
  const PieceNbytes& piece_nbytes_;
  std::vector<Move> parts_;
};

}  // namespace

std::vector<Move> inside_registrations(const std::vector<Move>& moves, HostEnd end, const std::byte* host,
                                       const PieceNbytes& piece_nbytes) {
  Cutter cutter(end, host, piece_nbytes);
  for (const Move& move : moves) cutter.cut(move);
  return cutter.take();
}

}  // namespace ferry
