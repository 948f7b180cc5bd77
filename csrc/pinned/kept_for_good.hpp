// Where things go that must never be freed, since a device that is lost may still touch them. They stay reachable, so
// that leak checkers know that it is on purpose.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <new>

namespace ferry {

// Allocates nothing: whoever may have to let something go for good holds it in a list from the start.
template <class T>
void keep_for_good(std::list<T>& nodes) noexcept {
  static std::mutex mutex;
  alignas(std::list<T>) static std::byte storage[sizeof(std::list<T>)];
  static auto* const kept = new (storage) std::list<T>;  // never destroyed
  const std::lock_guard lock(mutex);
  kept->splice(kept->end(), nodes);
}

}  // namespace ferry
