// Pinned memory that only we use, in turn: what goes to or comes from memory that is not pinned passes through it.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/runtime.hpp"
#include "pinned/pinned_block.hpp"

namespace ferry {

class HostRing;

// A piece of a slot, for one copy. Not for two threads at once.
class RingPiece {
 public:
  RingPiece(RingPiece&& other) noexcept;
  RingPiece(const RingPiece&) = delete;
  RingPiece& operator=(const RingPiece&) = delete;
  RingPiece& operator=(RingPiece&&) = delete;
  ~RingPiece();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  // As PinnedBlock::piece_nbytes.
  [[nodiscard]] std::size_t piece_nbytes(const std::byte* data, std::size_t nbytes) const noexcept {
    return block_->piece_nbytes(data, nbytes);
  }
  // Where the device of the ring finds it, as PinnedBlock::device_pointer. Throws Error.
  [[nodiscard]] std::optional<cuda::CUdeviceptr> device_pointer() const { return block_->device_pointer(data_); }

  // A device may touch it from now on. If it dies before one of the next two was called, its slot is abandoned.
  void given_to_device() noexcept { touched_ = true; }
  // The device is done with it when this event is. Throws std::bad_alloc.
  void used_until(std::shared_ptr<const cuda::Event> done);
  // The host has seen that the device is done with it.
  void done_with() noexcept { touched_ = false; }

 private:
  friend class HostRing;
  RingPiece(std::shared_ptr<HostRing> ring, std::size_t slot, std::shared_ptr<PinnedBlock> block, std::byte* data)
      : ring_(std::move(ring)), slot_(slot), block_(std::move(block)), data_(data) {}

  std::shared_ptr<HostRing> ring_;  // null once moved from
  std::size_t slot_;
  std::shared_ptr<PinnedBlock> block_;
  std::byte* data_;
  bool touched_ = false;
};

// Four slots, each pinned when it is first needed. Small pieces share a slot. Any thread.
// Invariant: a slot's memory is given out anew only when nobody holds a piece of it and its events are done.
class HostRing : public std::enable_shared_from_this<HostRing> {
 public:
  static constexpr std::size_t slot_count = 4;

  HostRing(const cuda::Driver& driver, std::size_t nbytes) noexcept;
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;
  ~HostRing();

  // What one piece may hold. Less than a fourth of the ring where the system locks no more. Pins the first slot.
  // Throws Error.
  [[nodiscard]] std::size_t slot_nbytes(const cuda::ContextScope& scope);

  // Blocks while all slots are in use: hold no piece meanwhile. Throws Error.
  [[nodiscard]] RingPiece take(const cuda::ContextScope& scope, std::size_t nbytes);
  // Nothing instead of waiting. Throws Error.
  [[nodiscard]] std::optional<RingPiece> try_take(const cuda::ContextScope& scope, std::size_t nbytes);

 private:
  friend class RingPiece;
  struct Slot {
    std::shared_ptr<PinnedBlock> block;
    std::size_t filled = 0;
    std::size_t holders = 0;
    std::vector<std::shared_ptr<const cuda::Event>> events;
    std::uint64_t ticket = 0;  // when it was last begun anew
    bool refused = false;      // the system does not lock another one
    bool abandoned = false;    // until its last holder has gone
  };
  enum class Next : unsigned char { append, begin, make, wait_for_events, wait_for_holders };
  struct Choice {
    Next next;
    std::size_t slot;
  };

  [[nodiscard]] std::optional<RingPiece> take(const cuda::ContextScope& scope, std::size_t nbytes, bool may_wait);
  [[nodiscard]] Choice choose(std::size_t nbytes);
  [[nodiscard]] bool is_idle(Slot& slot) const;
  [[nodiscard]] RingPiece piece(std::size_t slot, std::size_t nbytes);
  bool make(const cuda::ContextScope& scope, std::size_t slot, std::unique_lock<std::mutex>& lock);
  void wait_for_events(std::size_t slot, std::unique_lock<std::mutex>& lock);
  void wait_for_holders(std::size_t nbytes, std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool has_memory() const noexcept;
  void give_back(std::size_t slot, bool touched) noexcept;
  void give_back(Slot& slot, bool touched) noexcept;

  const cuda::Driver& driver_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Slot, slot_count> slots_;
  std::size_t slot_nbytes_;
  bool sized_ = false;  // a slot of that size was made
  std::size_t current_ = 0;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace ferry
