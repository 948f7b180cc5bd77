// Bringing tensors from devices to host memory, and back, for the Python layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind/device_source.hpp"
#include "bind/gathering.hpp"
#include "bind/pinned_place.hpp"
#include "transfer/arrival.hpp"
#include "transfer/transfers.hpp"

namespace ferry::bind {

// How a tensor on a device is to arrive: decided once, for its description, for plans and for the copy itself.
struct ArrivalPlan {
  Arrival arrival;
  KernelWish wish;
  bool kernels = false;  // ours may be used
};

[[nodiscard]] ArrivalPlan plan_arrival(const TensorRef& lying, const KernelWish& wish, bool producer_packs,
                                       bool kernels);

// Is it one run of elements in memory, which stays one in the same order?
[[nodiscard]] bool is_run(const Arrival& arrival);

// Are our kernels there for tensors of this device? Where they are not loaded yet: loads them, which initialises the
// driver, or says whether there are any to load.
[[nodiscard]] bool kernels_there(int device, bool load);

struct WayOverTheLink {
  const char* path;      // as CopyPath has them
  std::size_t launches;  // of kernels
};

// The way that a tensor takes: at once into `destination`, unless that is null; through the ring, if that was decided.
[[nodiscard]] WayOverTheLink way_over_the_link(const ArrivalPlan& plan, const Source& lying, const Source* destination,
                                               bool ring, int device, const std::string& snapshot);

// Copies that are enqueued one after another and waited for together. Every function is called with the GIL.
class Fetch {
 public:
  // "automatic", "always" or "never"; "wait", "in_stream" or "raise".
  Fetch(const std::string& snapshot, const std::string& back_pressure);

  // Where the values will lie once close() was waited for: as `described`, which was made of the same layout. Nothing
  // when no pinned memory is to be had.
  [[nodiscard]] std::optional<Source> add(const DeviceSource& source, const Source& described, const ArrivalPlan& plan);
  // So many small tensors will be added, of so many bytes as gathered_nbytes() counts: they are gathered.
  void expect(std::size_t nbytes, std::size_t tensors) noexcept { gathering_.expect(nbytes, tensors); }
  // Into memory that goes_directly() says yes to, read as and cast to what the plan says.
  void add_into(const DeviceSource& source, const Source& destination, const ArrivalPlan& plan);
  [[nodiscard]] std::shared_ptr<const Pending> close();

  [[nodiscard]] std::int64_t nbytes() const noexcept { return nbytes_; }
  // Copies and launches of kernels; of what is gathered, once it was closed.
  [[nodiscard]] std::size_t driver_copies() const noexcept { return driver_copies_; }
  [[nodiscard]] std::size_t launches() const noexcept { return launches_; }
  // Of how many tensors a snapshot was taken, and how many there are.
  [[nodiscard]] std::size_t snapshots() const noexcept { return snapshots_; }
  [[nodiscard]] std::size_t tensors() const noexcept { return added_; }

 private:
  void enqueue(const DeviceTensor& source, bool is_snapshot, const HostTarget& target);
  [[nodiscard]] std::optional<Source> gathered(const DeviceTensor& part, const Arrival& arrival,
                                               const Source& described);
  void flush();
  void note(const DownloadFacts& facts, std::size_t tensors) noexcept;

  Transfers& transfers_;
  std::unique_ptr<Transfers::Batch> batch_;
  Snapshot snapshot_;
  BackPressure pressure_;
  std::int64_t nbytes_ = 0;
  Gathering gathering_;
  std::size_t driver_copies_ = 0;
  std::size_t launches_ = 0;
  std::size_t added_ = 0;
  std::size_t snapshots_ = 0;
};

// Can one copy, or few, bring what arrives as `described` from this device into the destination itself? It must be
// pinned, or wait to be pinned at its first use, and be of the same dtype and shape.
[[nodiscard]] bool goes_directly(const Source& described, const Source& destination, int device);

// The destination as what copies go into, with what keeps it alive and pinned. With the GIL.
[[nodiscard]] HostTarget target_in(const Source& destination, PinnedPlace place);

// Into ordinary memory, through pinned pieces: of any layout and dtype, or new and as `described`. Block, without the
// GIL.
void fetch_into(const DeviceSource& source, DType reads_as, const Source& destination);
[[nodiscard]] Source fetch_new(const DeviceSource& source, const Source& described, const ArrivalPlan& plan);

// Fills a device tensor of the same shape, whose memory is read as `dtype`; the source may be changed when it returns.
// Null where the tensor is scattered, and its own library fills it better: nothing was done then.
[[nodiscard]] std::shared_ptr<const Pending> send(const DeviceSource& destination, DType dtype, const Source& source);

[[nodiscard]] int device_of_address(std::uintptr_t address);
// DLPack's number of a stream of ours on this device.
[[nodiscard]] std::int64_t ordering_stream_for(int device);
// False where the device is in nobody's use.
bool add_foreign_streams(int device, const std::vector<std::uintptr_t>& handles);
// Calls a Python object without arguments, from a thread that does not hold the GIL; errors are its own business.
void call_from_any_thread(PyObject* call) noexcept;
void set_python_staging_source(PyRef source);

}  // namespace ferry::bind
