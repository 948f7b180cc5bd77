#include "transfer/upload_choice.hpp"

#include <algorithm>
#include <limits>

#include "transfer/device_tensor.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/moves.hpp"
#include "transfer/path_choice.hpp"

namespace ferry {
namespace {

constexpr std::int64_t all_at_once = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t slots = 4;  // of staging, that parts take turns in
constexpr std::int64_t parts = 4;  // so that the host packs while the device copies
constexpr std::int64_t smallest_part_nbytes = std::int64_t{1} << 20;

enum class Reach : std::uint8_t { pieces, rows, run };

// How one copy brings it there.
Reach reach(const Layout& from, const Layout& to, std::int64_t rows_from) {
  const auto moves = moves_between(from, to, 1);
  if (!moves || moves->size() != 1) return Reach::pieces;
  const Move& move = moves->front();
  if (move.rows == 1) return Reach::run;
  const bool is_wide = has_wide_rows({{move.rows, move.width_nbytes}, {move.destination_pitch, 1}, 1}, rows_from);
  return is_wide ? Reach::rows : Reach::pieces;
}

bool is_marked(const TensorRef& ref) { return ref.conjugated || ref.negated; }

bool is_aligned_for_cast(const TensorRef& ref) {
  const std::int64_t unit = cast_alignment(ref.dtype);
  for (int i = 0; i < ref.layout.ndim(); ++i) {
    if (ref.layout.shape[i] > 1 && ref.layout.strides[i] % unit != 0) return false;
  }
  return device_address(ref.data) % static_cast<cuda::CUdeviceptr>(unit) == 0;
}

bool is_cast_on_device(const TensorRef& destination, const TensorRef& source) {
  return info(source.dtype).itemsize < info(destination.dtype).itemsize &&
         kernels_can_cast(source.dtype, destination.dtype) && !is_marked(source) && !is_marked(destination) &&
         is_aligned_for_cast(destination);
}

}  // namespace

UploadFacts upload_facts(const TensorRef& destination, const TensorRef& source, const LinkFigures& link) {
  UploadFacts facts;
  if (element_count(destination.layout.shape).value_or(0) == 0) return facts;
  facts.casts_on_device = is_cast_on_device(destination, source);
  facts.dtype = facts.casts_on_device ? source.dtype : destination.dtype;
  const std::int64_t itemsize = info(facts.dtype).itemsize;
  const UnpackChunk whole = unpack_chunks(source.layout, destination.layout, itemsize, all_at_once).front();
  facts.nbytes = whole.nbytes;
  facts.kernels_fit = kernels_can_copy(whole.device, destination.dtype, whole.landing, facts.dtype);
  const bool same_bits = facts.dtype == source.dtype && !source.byte_swapped &&
                         source.conjugated == destination.conjugated && source.negated == destination.negated;
  facts.needs_no_host = same_bits && reach(whole.host, whole.packed, link.rows_from) == Reach::run;
  facts.same_order = !facts.casts_on_device && reach(whole.landing, whole.device, link.rows_from) != Reach::pieces;
  const Layout& lying = destination.layout;
  const PackChunk own = pack_chunks(lying, lying, lying.itemsize, all_at_once, Repeated::each).front();
  const Reach in_own_order = reach(own.packed, own.device, link.rows_from);
  facts.is_block = in_own_order == Reach::run;
  facts.rows_pay = in_own_order == Reach::rows;
  return facts;
}

UploadPath choose_upload(const UploadFacts& facts, const UploadLimits& limits) {
  if (facts.nbytes == 0) return UploadPath::nothing;
  const bool goes_directly = facts.is_pinned && facts.needs_no_host;
  // The ring would make the call wait for the stream as well.
  if (goes_directly && facts.same_order && facts.nbytes > limits.ring_nbytes) return UploadPath::direct;
  if (!facts.has_kernels || !facts.kernels_fit) {
    return facts.is_block ? UploadPath::ring : UploadPath::producer_unpack;
  }
  // Where all of it fits into staging, the call waits for the copy alone, and not for the destination's stream.
  if (goes_directly && facts.nbytes >= limits.waits_from && facts.nbytes <= limits.staging_nbytes) {
    return UploadPath::direct_unpack;
  }
  if (!facts.is_block && !facts.rows_pay) return UploadPath::unpack;
  const bool pays = (facts.casts_on_device || !facts.same_order) && facts.nbytes >= limits.unpacks_from;
  return pays ? UploadPath::unpack : UploadPath::ring;
}

std::vector<UnpackChunk> upload_parts(const TensorRef& destination, const TensorRef& source, DType dtype,
                                      const UploadLimits& limits, std::int64_t slot_nbytes) {
  const std::int64_t itemsize = info(dtype).itemsize;
  std::int64_t most = limits.staging_nbytes / slots;
  if (slot_nbytes > 0) {
    const std::int64_t whole = element_count(source.layout.shape).value_or(0) * itemsize;
    most = std::min({most, slot_nbytes, std::max(whole / parts, smallest_part_nbytes)});
  }
  return unpack_chunks(source.layout, destination.layout, itemsize, std::max(most, itemsize));
}

}  // namespace ferry
