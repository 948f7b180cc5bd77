#include "transfer/path_choice.hpp"

#include "transfer/moves.hpp"

namespace ferry {
namespace {

constexpr std::int64_t row_unit = 64;  // narrower or crooked rows go at a fraction of the link's rate

Packer packer_of(const PathFacts& facts) {
  if (facts.is_block && !facts.casts) return Packer::nobody;
  if (facts.rows_pay && facts.host_waits && !facts.casts) return Packer::nobody;
  if (facts.has_kernels) return Packer::kernel;
  return facts.producer_packs ? Packer::producer : Packer::nobody;
}

bool is_stored(const PathFacts& facts, Packer packer, const LinkFigures& link) {
  if (!facts.has_kernels || facts.destination != HostMemory::mapped) return false;
  if (!facts.host_waits) return facts.nbytes <= link.stores_when_not;
  return facts.nbytes <= (packer == Packer::kernel ? link.stores_when_waiting : link.stores_of_blocks);
}

bool is_wide(const Move& move, const LinkFigures& link) {
  return has_wide_rows({{move.rows, move.width_nbytes}, {move.source_pitch, 1}, 1}, link.rows_from) &&
         has_wide_rows({{move.rows, move.width_nbytes}, {move.destination_pitch, 1}, 1}, link.rows_from);
}

}  // namespace

PathFacts path_facts(const TensorRef& source, const TensorRef& target, const LinkFigures& link) {
  PathFacts facts;
  facts.casts = source.dtype != target.dtype;
  facts.nbytes = element_count(target.layout.shape).value_or(0) * target.layout.itemsize;
  const auto moves = facts.casts ? std::nullopt : moves_between(source.layout, target.layout, 1);
  const bool one = moves && moves->size() == 1;
  facts.is_block = one && moves->front().rows == 1;
  facts.rows_pay = one && !facts.is_block && is_wide(moves->front(), link);
  return facts;
}

PathChoice choose_path(const PathFacts& facts, const LinkFigures& link) {
  if (facts.nbytes == 0) return {};
  const Packer packer = packer_of(facts);
  if (facts.destination == HostMemory::ordinary) return {CopyPath::ring, packer};
  if (is_stored(facts, packer, link)) return {CopyPath::direct_store, Packer::nobody};
  switch (packer) {
    case Packer::kernel:
      return {facts.nbytes <= facts.staging_nbytes ? CopyPath::pack : CopyPath::chunked_pack, packer};
    case Packer::producer:
      return {CopyPath::producer_pack, packer};
    case Packer::nobody:
      break;
  }
  if (facts.is_block) return {CopyPath::block, packer};
  return {facts.rows_pay && facts.host_waits ? CopyPath::rows : CopyPath::pieces, packer};
}

bool has_wide_rows(const Layout& layout, std::int64_t rows_from) {
  const auto rows = pitch(layout);
  return rows && rows->row_nbytes >= rows_from && rows->row_nbytes % row_unit == 0 && rows->step % row_unit == 0;
}

}  // namespace ferry
