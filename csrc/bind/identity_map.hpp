// Remembers what became of each object by its identity. Open addressing: one probe and no allocation per object, where
// std::unordered_map would cost as much as converting the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bind/py_ref.hpp"

namespace ferry::bind {

class IdentityMap {
 public:
  IdentityMap() : slots_(initial_capacity) {}

  // Borrowed; nullptr when the object is not known.
  [[nodiscard]] PyObject* find(PyObject* object) const noexcept { return slots_[slot_of(object)].value.get(); }

  // Holds the object too, so that its address is not reused while the map lives. The object is not known yet.
  void insert(PyObject* object, PyRef value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    slots_[slot_of(object)] = {PyRef::borrow(object), std::move(value)};
    ++size_;
  }

 private:
  struct Slot {
    PyRef key;
    PyRef value;
  };
  static constexpr std::size_t initial_capacity = 32;

  // The object's slot, or the free one where it would go. Half of the slots are free, so there always is one.
  [[nodiscard]] std::size_t slot_of(PyObject* object) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    std::size_t slot = ((address >> 4) * 0x9E3779B97F4A7C15ULL >> 20) & mask;  // Fibonacci hashing
    while (slots_[slot].key && slots_[slot].key.get() != object) slot = (slot + 1) & mask;
    return slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (Slot& slot : old) {
      if (slot.key) slots_[slot_of(slot.key.get())] = std::move(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace ferry::bind
