#include "bind/fetch.hpp"

#include <algorithm>
#include <utility>

#include "bind/device_path.hpp"
#include "bind/errors.hpp"
#include "bind/gil.hpp"
#include "bind/names.hpp"
#include "bind/owned_tensor.hpp"
#include "bind/pinnable.hpp"
#include "bind/pinned_memory.hpp"
#include "bind/pinned_place.hpp"
#include "bind/poison.hpp"
#include "bind/threads.hpp"
#include "bind/waiting.hpp"
#include "cuda/host_range.hpp"
#include "host/parallel.hpp"
#include "transfer/arrival.hpp"
#include "transfer/moves.hpp"

namespace ferry::bind {
namespace {

constexpr Names<Snapshot, 3> snapshot_names{
    {{{"automatic", Snapshot::automatic}, {"always", Snapshot::always}, {"never", Snapshot::never}}}};
constexpr Names<BackPressure, 3> pressure_names{
    {{{"wait", BackPressure::wait}, {"in_stream", BackPressure::in_stream}, {"raise", BackPressure::raise}}}};

// The part of a tensor that is copied, as what it is copied as.
DeviceTensor moved_part(const DeviceTensor& tensor, const Arrival& arrival) {
  DeviceTensor part = tensor;
  part.ref.data += arrival.source_offset;
  part.ref.layout = arrival.moved;
  if (arrival.as_block) part.ref.dtype = DType::uint8;
  if (arrival.by_kernel) part.ref.dtype = arrival.from;
  return part;
}

std::int64_t nbytes_of(const TensorRef& ref) {
  return element_count(ref.layout.shape).value_or(0) * ref.layout.itemsize;
}

Source without_elements(const Source& described) {
  Source empty = described;
  empty.ref.data = nullptr;
  empty.owner = PyRef::borrow(Py_None);
  return empty;
}

// Memory that the moved part lands in, and the whole tensor over it.
struct Landing {
  TensorRef part;
  Source whole;
};

Landing landing_at(std::byte* memory, const DeviceTensor& part, const Arrival& arrival, const Source& described) {
  Landing landing{part.ref, described};
  landing.part.data = memory;
  landing.part.layout = {arrival.moved.shape, arrival.landing_strides, arrival.moved.itemsize};
  if (arrival.by_kernel) {
    landing.part.dtype = arrival.to;
    landing.part.layout.itemsize = info(arrival.to).itemsize;
  }
  landing.whole.ref.data = memory + arrival.data_offset;
  return landing;
}

constexpr std::size_t most_direct_moves = 1024;

// The tensor's own layout, which may differ from the described one where no address depends on it.
Arrival arrival_now(const DeviceTensor& tensor, const ArrivalPlan& plan) {
  if (plan.arrival.by_kernel) return arrival_by_kernel(tensor.ref.layout, plan.wish).value_or(plan.arrival);
  return arrival_of(tensor.ref.layout, false, plan.wish.host_waits);
}

}  // namespace

Fetch::Fetch(const std::string& snapshot, const std::string& back_pressure)
    : transfers_(transfers()),
      batch_(std::make_unique<Transfers::Batch>(transfers_)),
      snapshot_(snapshot_names.value(snapshot)),
      pressure_(pressure_names.value(back_pressure)),
      gathering_(transfers_) {}

void Fetch::enqueue(const DeviceTensor& source, bool is_snapshot, const HostTarget& target) {
  const Snapshot snapshot = is_snapshot && snapshot_ != Snapshot::never ? Snapshot::taken : snapshot_;
  DownloadFacts facts;
  poison(target.ref);
  // The driver may block, whatever it is asked; and back-pressure may.
  waiting([&] { facts = batch_->download(source, target, snapshot, pressure_); });
  nbytes_ += nbytes_of(target.ref);
  ++added_;
  note(facts, 1);
}

void Fetch::note(const DownloadFacts& facts, std::size_t tensors) noexcept {
  driver_copies_ += facts.driver_copies;
  launches_ += facts.launches;
  snapshots_ += facts.snapshot ? tensors : 0;
}

void Fetch::flush() {
  const std::size_t tensors = gathering_.size();
  DownloadFacts facts;
  waiting([&] { facts = gathering_.flush(*batch_, snapshot_, pressure_); });
  note(facts, tensors);
}

std::optional<Source> Fetch::gathered(const DeviceTensor& part, const Arrival& arrival, const Source& described) {
  const auto nbytes = static_cast<std::size_t>(arrival.nbytes);
  if (gathering_.is_of_another_stream(part) || gathering_.is_full(nbytes)) flush();
  std::optional<Gathering::Place> place;
  {
    const GilReleased released(true);
    place = gathering_.add(part, arrival.by_kernel ? arrival.to : part.ref.dtype, nbytes);
  }
  if (!place) return std::nullopt;
  poison(place->data, nbytes);
  nbytes_ += arrival.nbytes;
  ++added_;
  Landing landing = landing_at(place->data, part, arrival, described);
  landing.whole.owner = lease_capsule(std::move(place->lease));
  return std::move(landing.whole);
}

std::optional<Source> Fetch::add(const DeviceSource& source, const Source& described, const ArrivalPlan& plan) {
  const DeviceTensor& tensor = source.tensor;
  const Arrival arrival = arrival_now(tensor, plan);
  if (arrival.nbytes == 0) return without_elements(described);
  const DeviceTensor part = moved_part(tensor, arrival);
  if (plan.kernels && !source.is_snapshot && is_run(arrival) &&
      gathering_.takes(static_cast<std::size_t>(arrival.nbytes))) {
    if (auto place = gathered(part, arrival, described)) return place;
  }
  std::shared_ptr<PinnedLease> lease;
  {
    const GilReleased released(true);
    const cuda::ContextScope scope = transfers_.runtime().enter(tensor.device);
    lease = transfers_.results().lease(scope, static_cast<std::size_t>(arrival.nbytes));
  }
  if (!lease) return std::nullopt;
  Landing landing = landing_at(lease->data(), part, arrival, described);
  enqueue(part, source.is_snapshot, HostTarget{landing.part, lease, nullptr});
  landing.whole.owner = lease_capsule(std::move(lease));
  return std::move(landing.whole);
}

void Fetch::add_into(const DeviceSource& source, const Source& destination, const ArrivalPlan& plan) {
  if (nbytes_of(source.tensor.ref) == 0) return;
  PinnedPlace place;
  {
    const GilReleased released(true);
    place = pinned_place(host_bytes(destination.ref), source.tensor.device);
  }
  DeviceTensor from = source.tensor;
  from.ref.dtype = plan.wish.from == plan.wish.to ? destination.ref.dtype : plan.wish.from;
  enqueue(from, source.is_snapshot, target_in(destination, std::move(place)));
}

std::shared_ptr<const Pending> Fetch::close() {
  flush();
  const GilReleased released(true);
  std::shared_ptr<const Pending> pending = batch_->close();
  note_pending_work();
  return pending;
}

HostTarget target_in(const Source& destination, PinnedPlace place) {
  HostTarget target;
  target.ref = destination.ref;
  target.owner = shared_owner(destination.owner);
  target.lease = std::move(place.lease);
  if (target.lease) target.lease->expose();
  if (place.range) {
    target.owner = place.range->use(std::move(target.owner));
    target.piece_nbytes = [range = std::move(*place.range)](const std::byte* data, std::size_t nbytes) {
      return range.piece_nbytes(data, nbytes);
    };
  }
  return target;
}

bool goes_directly(const Source& described, const Source& destination, int device) {
  const TensorRef& from = described.ref;
  const TensorRef& to = destination.ref;
  if (to.dtype != from.dtype || !(to.layout.shape == from.layout.shape) || to.byte_swapped) return false;
  if (nbytes_of(from) == 0) return true;
  const HostBytes bytes = host_bytes(to);
  const Waiting waiting = waiting_to_be_pinned(bytes);
  const GilReleased released(true);
  if (!moves_between(from.layout, to.layout, most_direct_moves)) return false;
  if (const PinnedPlace place = pinned_place(bytes, device)) return !(place.range && place.range->read_only());
  return waiting.pool != nullptr && waiting.pool->has_room(waiting.nbytes);
}

void fetch_into(const DeviceSource& source, DType reads_as, const Source& destination) {
  const ThreadLimit threads(threads_for(nbytes_of(destination.ref)));
  DeviceTensor from = source.tensor;
  from.ref.dtype = reads_as;
  waiting([&] { transfers().download_through_ring(from, destination.ref); });
}

Source fetch_new(const DeviceSource& source, const Source& described, const ArrivalPlan& plan) {
  const Arrival arrival = arrival_now(source.tensor, plan);
  if (arrival.nbytes == 0) return without_elements(described);
  const DeviceTensor part = moved_part(source.tensor, arrival);
  const Source memory = owned_source(DType::uint8, Extents{arrival.nbytes}, Extents{1});
  Landing landing = landing_at(memory.ref.data, part, arrival, described);
  landing.whole.owner = memory.owner;
  const ThreadLimit threads(threads_for(arrival.nbytes));
  waiting([&] { transfers().download_through_ring(part, landing.part); });
  return std::move(landing.whole);
}

std::shared_ptr<const Pending> send(const DeviceSource& destination, DType dtype, const Source& source) {
  const ThreadLimit threads(threads_for(nbytes_of(source.ref)));
  DeviceTensor to = destination.tensor;
  to.ref.dtype = dtype;
  PinnedPlace place;
  const TransferLimits& limits = transfers().limits();
  const auto nbytes = static_cast<std::size_t>(nbytes_of(source.ref));
  if (nbytes > 0 && nbytes >= std::min(limits.waits_from, limits.ring_nbytes)) {  // smaller ones go through the ring
    const GilReleased released(true);
    place = pinned_place(host_bytes(source.ref), to.device);
  }
  const HostMemory where = place ? HostMemory::pinned : HostMemory::ordinary;
  const HostTarget from = place ? target_in(source, std::move(place)) : HostTarget{source.ref, nullptr, nullptr, {}};
  return waiting([&]() -> std::shared_ptr<const Pending> {
    std::shared_ptr<const Pending> pending = transfers().upload(to, from, where);
    note_pending_work();
    return pending;
  });
}

int device_of_address(std::uintptr_t address) {
  const GilReleased released(true);
  return cuda::device_of(transfers().runtime().functions(), static_cast<cuda::CUdeviceptr>(address));
}

std::int64_t ordering_stream_for(int device) {
  const GilReleased released(true);
  cuda::Runtime& runtime = transfers().runtime();
  const cuda::ContextScope scope = runtime.enter(device);
  // No other thread's if there are enough, and never one that copies of others are made on.
  const cuda::CUstream stream = runtime.copy_stream(scope, cuda::Direction::ordering, cuda::per_thread_stream());
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(stream));
}

bool add_foreign_streams(int device, const std::vector<std::uintptr_t>& handles) {
  std::vector<cuda::CUstream> streams;
  for (const std::uintptr_t handle : handles) streams.push_back(reinterpret_cast<cuda::CUstream>(handle));
  const GilReleased released(true);
  return transfers().runtime().add_foreign_streams(device, streams);
}

void call_from_any_thread(PyObject* call) noexcept {
  with_gil([call] {
    const PyRef answer = PyRef::steal(PyObject_CallNoArgs(call));
    if (!answer) PyErr_WriteUnraisable(call);
  });
}

void set_python_staging_source(PyRef source) {
  const std::shared_ptr<void> held = shared_owner(std::move(source));
  transfers().set_staging_source([held](int device, std::size_t nbytes) -> std::optional<DeviceMemory> {
    std::optional<DeviceMemory> memory;
    with_gil([&] {
      const PyRef answer = PyRef::steal(
          PyObject_CallFunction(static_cast<PyObject*>(held.get()), "in", device, static_cast<Py_ssize_t>(nbytes)));
      unsigned long long address = 0;
      long long stream = 0;
      PyObject* owner = nullptr;
      if (!answer || !PyTuple_Check(answer.get()) ||
          !PyArg_ParseTuple(answer.get(), "KLO", &address, &stream, &owner)) {
        PyErr_Clear();  // no memory there: then there is no staging
        return;
      }
      memory = DeviceMemory{address, shared_owner(PyRef::borrow(owner)), reinterpret_cast<cuda::CUstream>(stream)};
    });
    return memory;
  });
}

}  // namespace ferry::bind
