#include "bind/pinned_memory.hpp"

#include <utility>

namespace ferry::bind {
namespace {

constexpr const char* lease_name = "tensorferry.pinned";

using Held = std::shared_ptr<PinnedLease>;

Held* held_in(PyObject* owner) noexcept {
  if (owner == nullptr || PyCapsule_IsValid(owner, lease_name) == 0) return nullptr;
  return static_cast<Held*>(PyCapsule_GetPointer(owner, lease_name));
}

}  // namespace

PyRef lease_capsule(std::shared_ptr<PinnedLease> lease) {
  auto held = std::make_unique<Held>(std::move(lease));
  PyRef capsule = checked(PyCapsule_New(held.get(), lease_name, [](PyObject* self) { delete held_in(self); }));
  static_cast<void>(held.release());  // the capsule's now
  return capsule;
}

std::shared_ptr<PinnedLease> lease_of(PyObject* owner) noexcept {
  const Held* held = held_in(owner);
  return held != nullptr ? *held : nullptr;
}

void expose_lease(PyObject* owner) noexcept {
  if (const Held* held = held_in(owner)) (*held)->expose();
}

}  // namespace ferry::bind
