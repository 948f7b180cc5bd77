#include "bind/metric_replays.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "bind/device_path.hpp"
#include "bind/gil.hpp"

namespace ferry::bind {
namespace {

constexpr auto shortest_pause = std::chrono::microseconds(50);
constexpr auto longest_pause = std::chrono::microseconds(5000);

bool fits_in(const MetricPieces& step, const ReplayShape& shape) noexcept {
  return !step.pieces.empty() && step.nbytes <= shape.nbytes && step.pieces.size() <= shape.pieces;
}

}  // namespace

std::optional<MetricReplays> MetricReplays::make(PyObject* tensors, const DeviceSource& counter, std::uint64_t slots) {
  const auto step = metric_pieces(tensors, counter.tensor.device, counter.tensor.stream);
  if (!step || step->pieces.empty()) return std::nullopt;
  const GilReleased released(true);
  auto ring = ReplayRing::make(transfers(), counter.tensor, {slots, step->nbytes, step->pieces.size()});
  if (!ring) return std::nullopt;
  return MetricReplays(std::move(ring), counter.tensor.device);
}

bool MetricReplays::fits(PyObject* tensors) const {
  const auto step = metric_pieces(tensors, device_, nullptr);
  return step && fits_in(*step, ring_->shape());
}

bool MetricReplays::capture(PyObject* tensors, std::int64_t stream) {
  const auto handle = cuda::stream_from_dlpack(stream);
  if (!handle) return false;
  auto step = metric_pieces(tensors, device_, *handle);
  if (!step || !fits_in(*step, ring_->shape())) return false;
  values_.resize(step->nbytes);
  runs_ = std::move(step->runs);
  const GilReleased released(true);
  ring_->capture(step->pieces);
  note_pending_work();
  return true;
}

std::optional<std::pair<std::uint64_t, PyRef>> MetricReplays::take() {
  const std::uint64_t number = ring_->reader().take(values_);
  if (number == 0) return std::nullopt;
  return std::pair{number, numbers_of(values_.data(), runs_)};
}

bool MetricReplays::is_graph_gone() const {
  const GilReleased released(true);
  return ring_->is_graph_gone();
}

bool wait_for_replays(const std::vector<std::shared_ptr<ReplayRing>>& rings, double timeout_s) {
  const GilReleased released(true);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (auto pause = shortest_pause;; pause = std::min(pause * 2, longest_pause)) {
    if (std::any_of(rings.begin(), rings.end(), [](const auto& ring) { return ring->reader().has_next(); }))
      return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace ferry::bind
