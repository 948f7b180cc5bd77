// A step's metrics on their way from a device: one slot of pinned memory, one thing to wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bind/device_source.hpp"
#include "bind/pending_copies.hpp"
#include "bind/py_ref.hpp"
#include "pinned/pinned_pool.hpp"

namespace ferry::bind {

// Every function is called with the GIL.
class SentMetrics {
 public:
  // Values of one dtype behind each other, and where they come to lie in the slot.
  struct Run {
    std::size_t offset = 0;
    std::int64_t count = 0;
    DType dtype{};
  };

  SentMetrics(PendingCopies pending, std::shared_ptr<PinnedLease> slot, std::vector<Run> runs) noexcept
      : pending_(std::move(pending)), slot_(std::move(slot)), runs_(std::move(runs)) {}

  [[nodiscard]] const PendingCopies& pending() const noexcept { return pending_; }
  // A list of all numbers in their order, once the copies are done. Throws Error, PythonErrorSet.
  [[nodiscard]] PyRef numbers() const;

 private:
  PendingCopies pending_;
  std::shared_ptr<PinnedLease> slot_;
  std::vector<Run> runs_;
};

// The numbers that lie in these runs behind `data`. Throws PythonErrorSet.
[[nodiscard]] PyRef numbers_of(const std::byte* data, const std::vector<SentMetrics::Run>& runs);

// The values of one step, in their order.
struct MetricPieces {
  std::vector<Gathered> pieces;  // those that have elements
  std::vector<SentMetrics::Run> runs;
  std::size_t nbytes = 0;  // where all come to lie
};

// Torch tensors of one device. Nothing where one takes Python to read. Asks no device.
[[nodiscard]] std::optional<MetricPieces> metric_pieces(PyObject* tensors, int device, cuda::CUstream stream);

// Gathers torch tensors of one device by one kernel, in the order of `stream`, which is not being captured. Nothing
// where there are no kernels, no pinned memory, or where a tensor takes Python to read.
[[nodiscard]] std::optional<SentMetrics> gather_metrics(PyObject* tensors, int device, std::int64_t stream);

// The same of blocks that were gathered by others in their stream, each with the dtype of its bytes. Nothing where
// there is no pinned memory.
[[nodiscard]] std::optional<SentMetrics> send_metrics(const std::vector<std::pair<DeviceSource, DType>>& blocks);

}  // namespace ferry::bind
