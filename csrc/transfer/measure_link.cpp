// Measures the link to a device, with the ring, the staging and the streams that copies use anyway.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "transfer/abandoned.hpp"
#include "transfer/device_staging.hpp"
#include "transfer/driver_copy.hpp"
#include "transfer/event_wait.hpp"
#include "transfer/host_ring.hpp"
#include "transfer/kernel_copy.hpp"
#include "transfer/measuring_time.hpp"
#include "transfer/refusals.hpp"
#include "transfer/transfers.hpp"

namespace ferry {
namespace {

constexpr std::size_t most_at_once = std::size_t{16} << 20;  // long enough that waking up counts for little
constexpr std::size_t most_pitched = std::size_t{4} << 20;
constexpr std::array<std::int64_t, 3> small_sizes{4 << 10, 16 << 10, 64 << 10};
constexpr std::array<std::int64_t, 4> widths{4096, 2048, 1024, 512};
// To be woken up takes as long as what is measured.
constexpr std::chrono::milliseconds most_asking{2};

// Where attempts copy from and to.
struct Ends {
  std::uintptr_t host;
  cuda::CUdeviceptr host_for_kernels;  // 0 where they cannot store there
  cuda::CUdeviceptr device;
  std::size_t nbytes;  // in one registration
};

class Laboratory {
 public:
  Laboratory(cuda::Runtime& runtime, const cuda::ContextScope& scope, std::shared_ptr<DeviceStaging> staging,
             std::size_t most_in_flight)
      : functions_(runtime.functions()),
        scope_(scope),
        staging_(std::move(staging)),
        most_in_flight_(most_in_flight),
        stream_(runtime.copy_stream(scope, cuda::Direction::to_host, cuda::legacy_stream())),
        done_(runtime.events().take(scope, cuda::EventUse::waiting)) {
    staging_->order_after_memory(stream_);
  }

  [[nodiscard]] const MeasuringTime& time() const noexcept { return time_; }
  [[nodiscard]] cuda::CUstream stream() const noexcept { return stream_; }
  [[nodiscard]] int steps() const noexcept { return steps_; }

  // One step of copies that `enqueue` begins. Seconds in the middle and bytes that there was room for; nothing where
  // the time is up or others have the memory. Throws Error.
  template <class Enqueue>
  std::optional<std::pair<double, std::size_t>> seconds_of(HostRing& ring, std::size_t nbytes, Enqueue enqueue) {
    if (!time_.has_step()) return std::nullopt;
    auto piece = ring.try_take(scope_, nbytes);
    auto slot = staging_->take(std::min(2 * nbytes, staging_->nbytes()), stream_, most_in_flight_);
    if (!piece || !slot) return std::nullopt;
    const Ends ends{reinterpret_cast<std::uintptr_t>(piece->data()), piece->device_pointer().value_or(0),
                    slot->address(), piece->piece_nbytes(piece->data(), nbytes)};
    piece->given_to_device();
    try {
      const double seconds = median(time_.step([&] {
        enqueue(ends);
        done_.record(stream_);
        wait();
      }));
      piece->done_with();
      ++steps_;
      return std::pair{seconds, ends.nbytes};
    } catch (...) {
      if (is_idle()) {
        piece->done_with();
      } else {
        abandon({std::move(slot)});  // nobody knows whether the device still touches it
      }
      throw;
    }
  }

 private:
  // Is everything that was enqueued done, for certain?
  [[nodiscard]] bool is_idle() const noexcept {
    try {
      done_.record(stream_);
      wait();
      return true;
    } catch (...) {
      return false;
    }
  }

  void wait() const {
    const auto begun = Clock::now();
    do {
      if (is_done(functions_, done_)) return;
    } while (Clock::now() < begun + most_asking);
    done_.wait();
  }

  const cuda::Functions& functions_;
  const cuda::ContextScope& scope_;
  const std::shared_ptr<DeviceStaging> staging_;
  const std::size_t most_in_flight_;
  const cuda::CUstream stream_;
  const cuda::Event done_;
  MeasuringTime time_;
  int steps_ = 0;
};

Layout bytes(std::size_t nbytes) {
  const auto count = static_cast<std::int64_t>(nbytes);
  const std::array<std::int64_t, 1> shape{count};
  const std::array<std::int64_t, 1> step{1};
  return {Extents(std::span<const std::int64_t>(shape)), Extents(std::span<const std::int64_t>(step)), 1};
}

Move row(std::size_t nbytes) { return {0, 0, static_cast<std::int64_t>(nbytes), 1, 0, 0}; }

double rate(const std::optional<std::pair<double, std::size_t>>& measured) {
  return measured && measured->first > 0 ? static_cast<double>(measured->second) / measured->first : 0;
}

}  // namespace

LinkMeasurements Transfers::measure_link(int device) {
  DeviceTensor tensor;
  tensor.device = device;
  tensor.stream = cuda::legacy_stream();
  bool ready = false;
  {
    const cuda::ContextScope scope = runtime_.enter(device, cuda::Primary::create);
    ready = staging(scope) != nullptr;
  }
  if (!ready && !make_staging(tensor, true)) throw no_staging(device);
  const cuda::ContextScope scope = enter(tensor);
  const cuda::Functions& functions = runtime_.functions();
  const std::shared_ptr<HostRing> to_host = ring(scope, cuda::Direction::to_host);
  const std::shared_ptr<HostRing> to_device = ring(scope, cuda::Direction::to_device);
  const std::shared_ptr<DeviceStaging> place = staging(scope);
  if (!place) throw no_staging(device);
  const std::size_t whole =
      std::min({to_host->slot_nbytes(scope), to_device->slot_nbytes(scope), place->nbytes(), most_at_once});
  const cuda::Kernels* kernels = this->kernels(scope, cuda::legacy_stream());

  LinkMeasurements found;
  Laboratory lab(runtime_, scope, place, limits_.most_in_flight);
  const auto copy = [&](CopyKind kind, Move move) {
    return [&, kind, move](const Ends& ends) {
      const bool out = kind == CopyKind::to_host;
      Move inside = move;
      if (move.rows == 1) inside.width_nbytes = std::min(move.width_nbytes, static_cast<std::int64_t>(ends.nbytes));
      enqueue_copy(functions, kind, {out ? ends.host : ends.device, out ? ends.device : ends.host}, inside,
                   lab.stream());
    };
  };
  // First to the device: so that what is copied back was written before.
  found.to_device_nbytes_per_s = rate(lab.seconds_of(*to_device, whole, copy(CopyKind::to_device, row(whole))));
  found.to_host_nbytes_per_s = rate(lab.seconds_of(*to_host, whole, copy(CopyKind::to_host, row(whole))));
  for (const std::int64_t nbytes : small_sizes) {
    const auto size = static_cast<std::size_t>(nbytes);
    if (size > whole) break;
    SmallCopy small{nbytes, 0, 0};
    if (const auto by = lab.seconds_of(*to_host, size, copy(CopyKind::to_host, row(size))))
      small.seconds_by_copy = by->first;
    bool stored = false;
    const auto store = [&](const Ends& ends) {
      const auto launch = gpu::launch_for(kernel_copy({ends.host_for_kernels, bytes(ends.nbytes), DType::uint8},
                                                      {ends.device, bytes(ends.nbytes), DType::uint8}),
                                          gpu::link_bound);
      stored = launch && ends.host_for_kernels != 0;
      if (stored) kernels->launch(scope, *launch, lab.stream());
    };
    if (kernels != nullptr) {
      const auto by = lab.seconds_of(*to_host, size, store);
      if (by && stored) small.seconds_by_store = by->first;
    }
    found.small.push_back(small);
  }
  const std::size_t pitched = std::min(most_pitched, whole / 2 / 4096 * 4096);
  const double block = rate(lab.seconds_of(*to_host, pitched, copy(CopyKind::to_host, row(pitched))));
  for (const std::int64_t width : widths) {
    const std::int64_t rows = static_cast<std::int64_t>(pitched) / width;
    if (rows < 2 || block <= 0) break;
    const auto by = lab.seconds_of(*to_host, pitched, copy(CopyKind::to_host, {0, 0, width, rows, 2 * width, width}));
    if (!by || by->second < pitched) break;
    found.pitched.push_back({width, rate(by) / block});
  }
  found.seconds = lab.time().seconds();
  found.steps = lab.steps();
  return found;
}

}  // namespace ferry
