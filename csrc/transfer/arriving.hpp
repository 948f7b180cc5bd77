// Parts of one tensor on their way to the host, each in a piece of the ring.
#pragma once

#include <deque>
#include <memory>
#include <utility>

#include "cuda/event.hpp"
#include "transfer/event_wait.hpp"
#include "transfer/host_ring.hpp"

namespace ferry {

// Where the call fails midway, the pieces wait for their events.
template <class Chunk>
class Arriving {
 public:
  Arriving() = default;
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;
  ~Arriving() {
    for (Part& part : parts_) mark(part);
  }

  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return parts_.size(); }
  void push(const Chunk& chunk, RingPiece piece, std::shared_ptr<const cuda::Event> event) {
    parts_.push_back({&chunk, std::move(piece), std::move(event)});
  }

  // Waits for the first one and gives it to `use`.
  template <class Use>
  void finish_first(const cuda::Functions& functions, Use use) {
    Part& part = parts_.front();
    wait_for(functions, *part.event);
    part.piece.done_with();
    part.event.reset();
    use(*part.chunk, part.piece);
    parts_.pop_front();
  }

 private:
  struct Part {
    const Chunk* chunk;
    RingPiece piece;
    std::shared_ptr<const cuda::Event> event;  // null once it was seen done
  };

  static void mark(Part& part) noexcept {
    if (!part.event) return;
    try {
      part.piece.used_until(std::move(part.event));
    } catch (...) {  // its slot is abandoned then
    }
  }

  std::deque<Part> parts_;
};

}  // namespace ferry
