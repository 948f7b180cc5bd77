// Small tensors of one call, collected so that one kernel and few copies bring them to the host.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "transfer/transfers.hpp"

namespace ferry::bind {

// Blocks of pinned memory are shared by tensors, and as large as this: no small array keeps more alive.
inline constexpr std::size_t gather_block_nbytes = std::size_t{1} << 20;
// Larger tensors are copied on their own.
inline constexpr std::size_t most_gathered_nbytes = gather_block_nbytes / 2;

// What a tensor takes of a block: arrays are aligned as memory of their own would be.
[[nodiscard]] constexpr std::size_t gathered_nbytes(std::size_t nbytes) noexcept { return (nbytes + 63) / 64 * 64; }

// Of one stream at a time. Not for two threads at once.
class Gathering {
 public:
  explicit Gathering(Transfers& transfers) noexcept : transfers_(transfers) {}

  // So many bytes of small tensors will be added, as gathered_nbytes() counts: blocks are not taken larger. Fewer than
  // two are not worth it.
  void expect(std::size_t nbytes, std::size_t tensors) noexcept;
  // Shall this tensor be added, which takes so many bytes at the host?
  [[nodiscard]] bool takes(std::size_t nbytes) const noexcept;
  // Must be flushed before this tensor can be added.
  [[nodiscard]] bool is_of_another_stream(const DeviceTensor& tensor) const noexcept;
  [[nodiscard]] bool is_full(std::size_t nbytes) const noexcept;

  // Where a block that is cast to `dtype` will lie, and what holds it. Nothing where there is no pinned memory that can
  // be gathered into.
  struct Place {
    std::byte* data;
    std::shared_ptr<PinnedLease> lease;
  };
  [[nodiscard]] std::optional<Place> add(const DeviceTensor& tensor, DType dtype, std::size_t nbytes);

  // Enqueues what was added.
  DownloadFacts flush(Transfers::Batch& batch, Snapshot snapshot, BackPressure pressure);
  [[nodiscard]] std::size_t size() const noexcept { return pieces_.size(); }

 private:
  Transfers& transfers_;
  std::size_t expected_nbytes_ = 0;
  std::size_t expected_ = 0;
  std::size_t filled_ = 0;  // of the last block
  std::vector<Gathered> pieces_;
  std::vector<GatherBlock> blocks_;
};

}  // namespace ferry::bind
