#include "bind/gathering.hpp"

#include <algorithm>
#include <utility>

namespace ferry::bind {
namespace {

constexpr std::size_t parts_of_staging = 4;  // so that others find room, too

}  // namespace

void Gathering::expect(std::size_t nbytes, std::size_t tensors) noexcept {
  expected_nbytes_ += nbytes;
  expected_ += tensors;
}

bool Gathering::takes(std::size_t nbytes) const noexcept {
  return nbytes > 0 && nbytes <= most_gathered_nbytes && expected_ + pieces_.size() > 1;
}

bool Gathering::is_of_another_stream(const DeviceTensor& tensor) const noexcept {
  if (pieces_.empty()) return false;
  const DeviceTensor& first = pieces_.front().source;
  return first.device != tensor.device || first.stream != tensor.stream;
}

bool Gathering::is_full(std::size_t nbytes) const noexcept {
  if (blocks_.empty()) return false;
  const std::size_t most = std::max(transfers_.limits().staging_nbytes / parts_of_staging, gather_block_nbytes);
  return blocks_.back().offset + filled_ + gathered_nbytes(nbytes) > most;
}

std::optional<Gathering::Place> Gathering::add(const DeviceTensor& tensor, DType dtype, std::size_t nbytes) {
  const std::size_t taken = gathered_nbytes(nbytes);
  const std::size_t wanted = std::clamp(expected_nbytes_, taken, gather_block_nbytes);
  expected_nbytes_ -= std::min(expected_nbytes_, taken);
  expected_ -= std::min<std::size_t>(expected_, 1);
  if (blocks_.empty() || blocks_.back().lease->nbytes() - filled_ < taken) {
    const cuda::ContextScope scope = transfers_.runtime().enter(tensor.device);
    auto lease = transfers_.results().lease(scope, wanted);
    if (!lease || lease->piece_nbytes(lease->data(), wanted) != wanted) return std::nullopt;
    const std::size_t offset = blocks_.empty() ? 0 : blocks_.back().offset + gathered_nbytes(blocks_.back().nbytes);
    blocks_.push_back({std::move(lease), offset, 0});
    filled_ = 0;
  }
  GatherBlock& block = blocks_.back();
  pieces_.push_back({tensor, block.offset + filled_, dtype});
  const Place place{block.lease->data() + filled_, block.lease};
  block.nbytes = filled_ + nbytes;
  filled_ += taken;
  return place;
}

DownloadFacts Gathering::flush(Transfers::Batch& batch, Snapshot snapshot, BackPressure pressure) {
  const std::vector<Gathered> pieces = std::exchange(pieces_, {});
  const std::vector<GatherBlock> blocks = std::exchange(blocks_, {});
  filled_ = 0;
  if (pieces.empty()) return {};
  if (pieces.size() > 1) return batch.gather(pieces, blocks, snapshot, pressure);
  const Gathered& only = pieces.front();
  HostTarget target;
  target.ref = only.source.ref;
  target.ref.dtype = only.dtype;
  target.ref.data = blocks.front().lease->data() + only.offset;
  const Layout& layout = only.source.ref.layout;
  const auto itemsize = std::int64_t{info(only.dtype).itemsize};
  target.ref.layout = {layout.shape, packed_strides(layout, Order::keep, itemsize), itemsize};
  target.lease = blocks.front().lease;
  return batch.download(only.source, target, snapshot, pressure);
}

}  // namespace ferry::bind
