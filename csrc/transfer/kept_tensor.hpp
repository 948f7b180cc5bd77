// Keeps a device tensor's memory alive for as long as copies through the ring may touch it.
#pragma once

#include <memory>
#include <utility>

#include "pinned/retire_queue.hpp"
#include "transfer/abandoned.hpp"

namespace ferry {

class KeptTensor {
 public:
  KeptTensor(RetireQueue& retired, std::shared_ptr<void> owner) noexcept
      : retired_(retired), owner_(std::move(owner)) {}
  KeptTensor(const KeptTensor&) = delete;
  KeptTensor& operator=(const KeptTensor&) = delete;
  ~KeptTensor() {
    if (!owner_) return;
    if (unmarked_) abandon({std::move(owner_)});
    if (!last_ || unmarked_) return;
    try {
      retired_.add({last_, {owner_}, {}, nullptr});
    } catch (...) {
      abandon({std::move(owner_)});
    }
  }

  // Work that touches it is enqueued from now on.
  void touched() noexcept { unmarked_ = true; }
  // All of it so far is done when this event is.
  void marked_by(std::shared_ptr<const cuda::Event> event) noexcept {
    last_ = std::move(event);
    unmarked_ = false;
  }
  // The host has seen that all marked work is done.
  void seen_done() noexcept { last_.reset(); }

 private:
  RetireQueue& retired_;
  std::shared_ptr<void> owner_;
  std::shared_ptr<const cuda::Event> last_;
  bool unmarked_ = false;
};

}  // namespace ferry
