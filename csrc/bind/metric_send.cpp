#include "bind/metric_send.hpp"

#include <algorithm>
#include <span>

#include "bind/device_path.hpp"
#include "bind/gil.hpp"
#include "bind/metric_number.hpp"
#include "bind/torch_source.hpp"
#include "dlpack/describe.hpp"

namespace ferry::bind {
namespace {

constexpr std::size_t alignment_of_runs = 16;

std::size_t rounded(std::size_t nbytes) noexcept {
  return (nbytes + alignment_of_runs - 1) / alignment_of_runs * alignment_of_runs;
}

std::int64_t elements_of(const TensorRef& ref) { return element_count(ref.layout.shape).value_or(0); }

bool is_packed(const Layout& layout) noexcept {
  std::int64_t step = layout.itemsize;
  for (int i = layout.shape.size() - 1; i >= 0; --i) {
    if (layout.shape[i] != 1 && layout.strides[i] != step) return false;
    step *= layout.shape[i];
  }
  return true;
}

// Where the values of a tensor come to lie, behind those of others.
std::size_t add_run(std::vector<SentMetrics::Run>& runs, std::size_t& nbytes, DType dtype, std::int64_t count) {
  const std::size_t offset = nbytes;
  runs.push_back({offset, count, dtype});
  nbytes += rounded(static_cast<std::size_t>(count) * info(dtype).itemsize);
  return offset;
}

std::shared_ptr<PinnedLease> slot_for(int device, std::size_t nbytes) {
  const cuda::ContextScope scope = transfers().runtime().enter(device);
  return transfers().results().lease(scope, nbytes);
}

// Nothing for what is no block of real numbers on this device.
std::optional<DeviceTensor> piece_of(PyObject* tensor, int device, cuda::CUstream stream) {
  const FastType* type = fast_type(Py_TYPE(tensor));
  if (type == nullptr || !type->is_torch) return std::nullopt;
  TorchReading reading;
  if (!read_torch(tensor, *type, reading, kDLCUDA) || reading.negated || reading.conjugated) return std::nullopt;
  DeviceTensor piece;
  piece.ref = describe(reading.dl);
  const DTypeInfo& dtype = info(piece.ref.dtype);
  const bool is_number = dtype.kind != Kind::complex && dtype.elements_per_item == 1;
  if (reading.dl.device.device_id != device || !is_number || !is_packed(piece.ref.layout)) return std::nullopt;
  piece.device = device;
  piece.stream = stream;
  piece.owner = shared_owner(std::move(reading.storage));
  return piece;
}

SentMetrics sent(std::shared_ptr<const Pending> pending, std::shared_ptr<PinnedLease> slot,
                 std::vector<SentMetrics::Run> runs) {
  note_pending_work();
  return {PendingCopies{std::move(pending)}, std::move(slot), std::move(runs)};
}

}  // namespace

PyRef numbers_of(const std::byte* data, const std::vector<SentMetrics::Run>& runs) {
  PyRef numbers = checked(PyList_New(0));
  for (const SentMetrics::Run& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      const Scalar scalar{data + run.offset + i * info(run.dtype).itemsize, run.dtype, {}};
      if (PyList_Append(numbers.get(), scalar.number().get()) != 0) throw PythonErrorSet{};
    }
  }
  return numbers;
}

PyRef SentMetrics::numbers() const {
  static_cast<void>(pending_.wait(std::nullopt));
  return numbers_of(slot_->data(), runs_);
}

std::optional<MetricPieces> metric_pieces(PyObject* tensors, int device, cuda::CUstream stream) {
  MetricPieces step;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(tensors); ++i) {
    auto piece = piece_of(PyList_GET_ITEM(tensors, i), device, stream);
    if (!piece) return std::nullopt;
    const std::int64_t count = elements_of(piece->ref);
    const DType dtype = piece->ref.dtype;
    const std::size_t offset = add_run(step.runs, step.nbytes, dtype, count);
    if (count > 0) step.pieces.push_back({std::move(*piece), offset, dtype});
  }
  return step;
}

std::optional<SentMetrics> gather_metrics(PyObject* tensors, int device, std::int64_t stream) {
  const auto handle = cuda::stream_from_dlpack(stream);
  if (!handle) return std::nullopt;
  auto step = metric_pieces(tensors, device, *handle);
  if (!step || step->pieces.empty()) return std::nullopt;
  const GilReleased released(true);
  {
    const cuda::ContextScope scope = transfers().enter(step->pieces.front().source);
    if (transfers().kernels(scope, *handle) == nullptr) return std::nullopt;
  }
  std::shared_ptr<PinnedLease> slot = slot_for(device, step->nbytes);
  if (!slot) return std::nullopt;
  const GatherBlock block{slot, 0, step->nbytes};
  Transfers::Batch batch(transfers());
  // In the producer's stream: some kilobytes delay it less than the order of another stream after it would.
  batch.gather(step->pieces, std::span(&block, 1), Snapshot::never, BackPressure::in_stream);
  return sent(batch.close(), std::move(slot), std::move(step->runs));
}

std::optional<SentMetrics> send_metrics(const std::vector<std::pair<DeviceSource, DType>>& blocks) {
  if (blocks.empty()) return std::nullopt;
  std::vector<SentMetrics::Run> runs;
  std::size_t total = 0;
  std::vector<std::size_t> offsets;
  for (const auto& [block, dtype] : blocks) {
    const auto nbytes = elements_of(block.tensor.ref) * block.tensor.ref.layout.itemsize;
    offsets.push_back(add_run(runs, total, dtype, nbytes / info(dtype).itemsize));
  }
  const GilReleased released(true);
  std::shared_ptr<PinnedLease> slot = slot_for(blocks.front().first.tensor.device, std::max<std::size_t>(total, 1));
  if (!slot) return std::nullopt;
  Transfers::Batch batch(transfers());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const DeviceTensor& from = blocks[i].first.tensor;
    HostTarget target;
    target.ref = from.ref;
    target.ref.data = slot->data() + offsets[i];
    target.lease = slot;
    batch.download(from, target, Snapshot::taken, BackPressure::wait);
  }
  return sent(batch.close(), std::move(slot), std::move(runs));
}

}  // namespace ferry::bind
