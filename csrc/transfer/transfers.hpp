// Copies between devices and host memory, in stream order. This is all that bind/ has to know of the device path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cuda/runtime.hpp"
#include "pinned/pinned_pool.hpp"
#include "pinned/retire_queue.hpp"
#include "transfer/device_memory.hpp"
#include "transfer/device_tensor.hpp"
#include "transfer/graph_holds.hpp"
#include "transfer/link_figures.hpp"
#include "transfer/link_measurements.hpp"
#include "transfer/path_choice.hpp"
#include "transfer/pending.hpp"
#include "transfer/pinned_pieces.hpp"
#include "transfer/upload_choice.hpp"

namespace ferry {

class DeviceStaging;
class HostRing;
class StreamWork;
class StagingSlot;
struct StagedMoves;

enum class Snapshot : std::uint8_t {
  automatic,  // into staging when that is large enough, else the copy is made on the producer's stream
  always,     // or an error
  never,      // on the producer's stream
  taken,      // the source is one: it was made for this copy in its stream, and nobody else writes to it
};

// When what is needed (a slot of staging or of the ring, room in a queue) is all in use.
enum class BackPressure : std::uint8_t {
  wait,       // the caller waits for the oldest
  in_stream,  // the copy is made on the producer's stream instead, where that can be
  raise,      // an error
};

// Where a download goes: pinned memory.
struct HostTarget {
  TensorRef ref;                       // same shape and item size as the source
  std::shared_ptr<PinnedLease> lease;  // memory of ours; null for memory that its owner has registered as one piece
  std::shared_ptr<void> owner;         // keeps memory of others alive until the copy is done
  PieceNbytes piece_nbytes{};          // of memory of others that is registered in several pieces
};

// What a download did.
struct DownloadFacts {
  std::size_t driver_copies = 0;
  std::size_t launches = 0;  // of kernels
  bool snapshot = false;     // the source was free for changes as soon as its stream reached the snapshot
  bool on_producer_stream = false;
};

struct TransferLimits {
  std::size_t results_nbytes = 0;                      // pinned results
  std::size_t ring_nbytes = std::size_t{64} << 20;     // of the host rings, for each device and direction
  std::size_t staging_nbytes = std::size_t{64} << 20;  // of device staging, for each device
  std::size_t largest_snapshot_nbytes = std::size_t{64} << 20;
  std::size_t chunk_nbytes = std::size_t{4} << 20;   // of long copies on the producer's stream
  std::size_t most_in_flight = 256;                  // downloads for each copy stream
  std::size_t unpacks_from = std::size_t{64} << 10;  // as UploadLimits has them
  std::size_t waits_from = std::size_t{1} << 20;
  bool kernels = true;  // may our kernels be used where they are there?
};
[[nodiscard]] UploadLimits upload_limits(const TransferLimits& limits);

// A small tensor that is gathered with others.
struct Gathered {
  DeviceTensor source;         // a block
  std::size_t offset = 0;      // of its elements behind the first gathered byte
  DType dtype = DType::uint8;  // that they are cast to
};

// Pinned memory that some of what was gathered goes to.
struct GatherBlock {
  std::shared_ptr<PinnedLease> lease;
  std::size_t offset = 0;  // of its first byte behind the first gathered byte
  std::size_t nbytes = 0;
};

// Any thread; no function may be called with the GIL that says that it blocks.
class Transfers {
 public:
  Transfers(cuda::Runtime& runtime, const TransferLimits& limits);
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers();  // nothing may be in flight; the process's own instance is never destroyed

  [[nodiscard]] cuda::Runtime& runtime() noexcept { return runtime_; }
  [[nodiscard]] PinnedPool& results() noexcept { return *results_; }
  [[nodiscard]] RetireQueue& retired() noexcept { return retired_; }
  [[nodiscard]] GraphHolds& graph_holds() noexcept { return graph_holds_; }
  // Kernels are used where they are there, or not from now on.
  void use_kernels(bool use) noexcept { uses_kernels_.store(use, std::memory_order_relaxed); }
  [[nodiscard]] const TransferLimits& limits() const noexcept { return limits_; }
  // How staging is taken, once for each device; without one, from the driver's stream-ordered allocator.
  void set_staging_source(StagingSource source);

  // Our kernels in the scope's context; null where they are not there, or not wanted. Throws Error.
  [[nodiscard]] const cuda::Kernels* kernels(const cuda::ContextScope& scope, cuda::CUstream stream);
  // What is known of the link to this device; the same for as long as the process lives.
  [[nodiscard]] LinkFigures link(int device);
  // Who is asked, once for each device, for better figures than those that the system tells; with no lock held.
  using FiguresSource = std::optional<LinkFigures> (*)(int device);
  void set_figures_source(FiguresSource source) noexcept { figures_source_.store(source); }
  // Measures the link with the ring and staging, which are made where they were not yet. Blocks for at most
  // 200 ms besides; creates the device's primary context. Throws Error.
  [[nodiscard]] LinkMeasurements measure_link(int device);

  // Enqueues; never waits unless back-pressure says so. Everything that was enqueued before a failure is retired
  // properly. Not for two threads at once.
  class Batch {
   public:
    explicit Batch(Transfers& transfers) noexcept;
    Batch(const Batch&) = delete;
    Batch& operator=(const Batch&) = delete;
    ~Batch();  // one that was not closed is closed, and its Pending dropped

    // Copies the elements. `target.ref` may have another layout, and where there are kernels another dtype, which
    // values are cast to. Throws Error before anything is enqueued when the stream is capturing, and when the copy
    // would take too many pieces.
    DownloadFacts download(const DeviceTensor& source, const HostTarget& target, Snapshot snapshot,
                           BackPressure pressure);
    // Gathers small tensors of one stream into blocks of pinned memory: one kernel, and one copy for each block. Only
    // where there are kernels. Throws Error as download().
    DownloadFacts gather(std::span<const Gathered> pieces, std::span<const GatherBlock> blocks, Snapshot snapshot,
                         BackPressure pressure);
    // The other way, on the destination's stream, from memory that the caller must not change before the Pending is
    // done (pinned), see also Transfers::upload.
    DownloadFacts upload_pinned(const DeviceTensor& destination, const HostTarget& source);
    // One event for each stream that was used.
    [[nodiscard]] std::shared_ptr<Pending> close();

   private:
    // An attempt to make a snapshot: what it did, else the staging that has no room now, if there is any.
    struct Attempt {
      std::optional<DownloadFacts> facts;
      std::shared_ptr<DeviceStaging> staging;
    };

    [[nodiscard]] std::optional<DownloadFacts> download_staged(const DeviceTensor& source, const HostTarget& target,
                                                               Snapshot snapshot, BackPressure pressure);
    // Asks again and again, as back-pressure has it, until there is room. Nothing where the work has to be done in
    // another way.
    [[nodiscard]] std::optional<DownloadFacts> with_staging(const DeviceTensor& source, std::size_t nbytes, bool must,
                                                            BackPressure pressure,
                                                            const std::function<Attempt()>& try_once);
    [[nodiscard]] std::optional<DownloadFacts> download_by_kernel(const DeviceTensor& source, const HostTarget& target,
                                                                  Snapshot snapshot, BackPressure pressure);
    [[nodiscard]] std::optional<DownloadFacts> pack(const DeviceTensor& source, const HostTarget& target,
                                                    Snapshot snapshot, BackPressure pressure);
    [[nodiscard]] std::optional<DownloadFacts> pack_in_chunks(const DeviceTensor& source, const HostTarget& target,
                                                              BackPressure pressure);
    [[nodiscard]] std::optional<DownloadFacts> gather_staged(std::span<const Gathered> pieces,
                                                             std::span<const GatherBlock> blocks, Snapshot snapshot,
                                                             BackPressure pressure);
    DownloadFacts gather_stored(std::span<const Gathered> pieces, std::span<const GatherBlock> blocks);
    [[nodiscard]] std::optional<DownloadFacts> store(const DeviceTensor& source, const HostTarget& target);
    [[nodiscard]] Attempt try_to_stage(const DeviceTensor& source, const HostTarget& target, const StagedMoves& moves);
    DownloadFacts copy_behind(const DeviceTensor& source, const HostTarget& target);
    DownloadFacts copy_in_stream(const DeviceTensor& tensor, const HostTarget& host, cuda::Direction direction);
    void enqueue_on(const cuda::ContextScope& scope, const DeviceTensor& tensor,
                    const std::function<void(StreamWork&)>& enqueue);
    void finish_all();

    Transfers& transfers_;
    std::vector<std::unique_ptr<StreamWork>> works_;          // not yet marked by events
    std::vector<std::shared_ptr<const cuda::Event>> events_;  // of what is
    bool reaped_ = false;
  };

  // Into memory that is not pinned, through the ring; `destination` may have any layout. Blocks until done.
  // Throws Error.
  void download_through_ring(const DeviceTensor& source, const TensorRef& destination);

  // Fills a device tensor from ordinary host memory of any layout and dtype (cast on the way, as copy() does), through
  // the ring, on the destination's stream. When it returns the source may be changed; the destination is ordered in its
  // stream. Blocks while the ring is full. Throws Error.
  std::shared_ptr<Pending> upload_through_ring(const DeviceTensor& destination, const TensorRef& source);

  // The same by whichever way is chosen (choose_upload), from ordinary or pinned memory: with kernels it is unpacked,
  // and cast, on the device where that pays. Blocks also while pinned memory is read, and while staging is in use. Null
  // where a destination that no copy reaches as a whole is better filled by its own library; nothing was done then.
  // Throws Error.
  std::shared_ptr<Pending> upload(const DeviceTensor& destination, const HostTarget& source, HostMemory where);

  // The context of the tensor's stream, or for a default stream the current one of the device, current in this thread.
  // Throws Error.
  [[nodiscard]] cuda::ContextScope enter(const DeviceTensor& tensor);

  // Releases what is done: retired holds, those of graphs, fences of the pool. Never waits.
  void reap() noexcept;

 private:
  friend class Batch;
  struct PerContext {
    cuda::ContextIdentity context;
    std::shared_ptr<DeviceStaging> staging;
    bool has_no_staging = false;  // there was no memory for it
    std::shared_ptr<HostRing> to_host;
    std::shared_ptr<HostRing> to_device;
  };

  // Runs `use` on what is kept for this context, with the lock held.
  template <class Use>
  auto with_context(const cuda::ContextScope& scope, Use use);
  [[nodiscard]] std::shared_ptr<DeviceStaging> staging(const cuda::ContextScope& scope);
  // Takes memory for staging in the tensor's context; none of ours may be current. False when there is none, and,
  // unless it must be, when there was none before.
  bool make_staging(const DeviceTensor& tensor, bool must);
  // Takes memory for staging where there are kernels; none of our contexts may be current. Throws Error.
  [[nodiscard]] bool has_kernels_and_staging(const DeviceTensor& tensor);
  // False where the copy engine does it as well, or nothing is free. Throws Error.
  [[nodiscard]] bool download_packed(const cuda::ContextScope& scope, const std::shared_ptr<HostRing>& through,
                                     const DeviceTensor& source, const TensorRef& destination);
  // Null where there is no staging, or none is to become free. Throws Error.
  [[nodiscard]] std::shared_ptr<Pending> upload_unpacked(const DeviceTensor& destination, const HostTarget& source,
                                                         DType dtype, UploadPath path);
  [[nodiscard]] std::shared_ptr<HostRing> ring(const cuda::ContextScope& scope, cuda::Direction direction);

  cuda::Runtime& runtime_;
  const TransferLimits limits_;
  std::shared_ptr<PinnedPool> results_;
  RetireQueue retired_;
  GraphHolds graph_holds_;
  std::atomic<bool> uses_kernels_;
  std::atomic<FiguresSource> figures_source_{nullptr};
  std::mutex mutex_;
  StagingSource staging_source_;
  std::vector<PerContext> contexts_;
  std::map<int, LinkFigures> links_;
};

}  // namespace ferry
