// Makes new values whose rows are short: items are brought together in the order of the destination, then made by long
// rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "host/parallel.hpp"
#include "host/walk.hpp"

namespace ferry {

// A walk, cut into runs of the destination: all of its first axes, and a part of the next one.
class PackedRuns {
 public:
  // Runs of at most `most` items.
  PackedRuns(const Walk<2>& walk, std::int64_t to_itemsize, std::int64_t most) noexcept;

  // Are runs worth their while? Not where rows are long, or the destination has no runs that are longer, or columns can
  // be made instead.
  [[nodiscard]] bool help(std::int64_t to_itemsize, std::int64_t from_itemsize) const noexcept;
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }

  // Where run number `at` begins, and how much of the axis that is cut it takes.
  struct Run {
    Walk<2>::Pointers begin;
    std::int64_t chunk;
    std::int64_t items;
  };
  [[nodiscard]] Run run(std::int64_t at) const noexcept;

  // Brings the items of a run together.
  void pack(const Run& run, std::byte* scratch, std::int64_t itemsize) const;

 private:
  const Walk<2>& walk_;
  std::size_t whole_ = 0;
  std::int64_t items_ = 1;  // of the whole axes
  std::int64_t chunk_ = 1;  // of the one after them
  std::int64_t count_ = 1;
};

// `make_row()` gives each thread what makes its rows. False, and nothing was done, where runs do not help.
template <class MakeRow>
bool carry_packed(const Walk<2>& walk, std::int64_t to_itemsize, std::int64_t from_itemsize, MakeRow&& make_row) {
  constexpr std::int64_t scratch_nbytes = 32 * 1024;
  constexpr std::int64_t piece_nbytes = 256 * 1024;
  const PackedRuns runs(walk, to_itemsize, scratch_nbytes / std::max(to_itemsize, from_itemsize));
  if (!runs.help(to_itemsize, from_itemsize)) return false;
  const std::int64_t nbytes = walk.count() * std::max(to_itemsize, from_itemsize);
  const std::int64_t per_piece = std::max<std::int64_t>(piece_nbytes * runs.count() / nbytes, 1);
  parallel_for(useful_threads(nbytes), (runs.count() + per_piece - 1) / per_piece, [&](std::int64_t piece) noexcept {
    const ThreadLimit alone(1);
    alignas(64) std::array<std::byte, static_cast<std::size_t>(scratch_nbytes)> scratch;
    auto row = make_row();
    const std::int64_t end = std::min((piece + 1) * per_piece, runs.count());
    for (std::int64_t at = piece * per_piece; at < end; ++at) {
      const PackedRuns::Run run = runs.run(at);
      runs.pack(run, scratch.data(), from_itemsize);
      row(run.begin[0], to_itemsize, scratch.data(), from_itemsize, run.items);
    }
  });
  return true;
}

}  // namespace ferry
