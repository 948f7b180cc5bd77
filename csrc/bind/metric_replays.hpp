// Metrics that the replays of a graph leave behind: what Python sees of a ring.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bind/metric_send.hpp"
#include "transfer/replay_ring.hpp"

namespace ferry::bind {

// Every function is called with the GIL. Taking is not for two threads at once.
class MetricReplays {
 public:
  // For metrics like these, by tensors of one device. `counter` is ordered in its stream already. Nothing where there
  // are no kernels, no pinned memory, where no tensor has elements, or where one takes Python to read. Throws Error.
  [[nodiscard]] static std::optional<MetricReplays> make(PyObject* tensors, const DeviceSource& counter,
                                                         std::uint64_t slots);

  // Could a step of these tensors be captured? False also where one takes Python to read.
  [[nodiscard]] bool fits(PyObject* tensors) const;
  // Makes it part of the graph that `stream` is capturing; false and nothing is done where it does not fit. Throws
  // Error.
  [[nodiscard]] bool capture(PyObject* tensors, std::int64_t stream);
  // The oldest replay that was not taken: its number, from 1 on, and its numbers in their order. Throws PythonErrorSet.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, PyRef>> take();
  [[nodiscard]] std::uint64_t gaps() const noexcept { return ring_->reader().gaps(); }
  [[nodiscard]] bool is_graph_gone() const;
  [[nodiscard]] int device() const noexcept { return device_; }
  [[nodiscard]] const std::shared_ptr<ReplayRing>& ring() const noexcept { return ring_; }

 private:
  MetricReplays(std::shared_ptr<ReplayRing> ring, int device) noexcept : ring_(std::move(ring)), device_(device) {}

  std::shared_ptr<ReplayRing> ring_;
  int device_;
  std::vector<SentMetrics::Run> runs_;
  std::vector<std::byte> values_;
};

// Looks at rings until one of them has a replay to take, or the time is up. Without the GIL, and without a device.
[[nodiscard]] bool wait_for_replays(const std::vector<std::shared_ptr<ReplayRing>>& rings, double timeout_s);

}  // namespace ferry::bind
