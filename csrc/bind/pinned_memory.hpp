// Leases of pinned memory in the hands of Python objects.
#pragma once

#include <memory>

#include "bind/py_ref.hpp"
#include "pinned/pinned_pool.hpp"

namespace ferry::bind {

// A capsule that ends the lease when it dies.
[[nodiscard]] PyRef lease_capsule(std::shared_ptr<PinnedLease> lease);

// The lease in such a capsule; nothing for other objects.
[[nodiscard]] std::shared_ptr<PinnedLease> lease_of(PyObject* owner) noexcept;

// Somebody is given memory that `owner` keeps: if that is a lease, its next loan waits for an epoch.
void expose_lease(PyObject* owner) noexcept;

}  // namespace ferry::bind
