// Small values that each replay of a graph leaves in pinned memory: the last few replays' are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transfer/replay_reader.hpp"
#include "transfer/transfers.hpp"

namespace ferry {

// What a ring is made for.
struct ReplayShape {
  std::uint64_t slots = 0;   // replays that are kept
  std::size_t nbytes = 0;    // of the values of one
  std::uint64_t pieces = 0;  // tensors that they come from
};

// All of it is allocated when it is made; a capture and the replays allocate nothing. The device never waits: a replay
// overwrites the oldest slot, read or not.
class ReplayRing {
 public:
  // `counter`: 16 bytes of zeros in device memory, written already. Outside of captures. Null where there are no
  // kernels, or no pinned memory that the device can write to. Throws Error.
  [[nodiscard]] static std::shared_ptr<ReplayRing> make(Transfers& transfers, const DeviceTensor& counter,
                                                        const ReplayShape& shape);
  ReplayRing(const ReplayRing&) = delete;
  ReplayRing& operator=(const ReplayRing&) = delete;
  ~ReplayRing() = default;

  [[nodiscard]] const ReplayShape& shape() const noexcept { return shape_; }

  // One launch in the pieces' stream, which is being captured; once. The graph holds all that it touches. `pieces` fit
  // into the shape; at least one has elements. Throws Error.
  void capture(std::span<const Gathered> pieces);

  [[nodiscard]] ReplayReader& reader() noexcept { return reader_; }
  // Can no replay come any more? What came before may still be there.
  [[nodiscard]] bool is_graph_gone() noexcept;

 private:
  struct Memory;
  struct InGraph;
  ReplayRing(Transfers& transfers, const ReplayShape& shape, std::shared_ptr<Memory> memory) noexcept;

  Transfers& transfers_;
  const ReplayShape shape_;
  std::shared_ptr<Memory> memory_;
  std::weak_ptr<InGraph> in_graph_;
  ReplayReader reader_;
};

}  // namespace ferry
