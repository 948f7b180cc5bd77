// Pinned host memory: a map of intervals. Registrations lock whole pages, copies are judged by bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "types.hpp"
#include "windows.hpp"

namespace fake {

struct Registration {
  u64 number;
  std::uintptr_t begin;
  std::size_t nbytes;
  unsigned flags;
  bool allocated;  ///< by cuMemHostAlloc, not registered
  u64 context_id;
  Device device;
  std::uintptr_t window = 0;  ///< where kernels see it
  bool stale = false;         ///< shared with a forked child on a machine where that breaks pinning
  bool reported = false;

  std::uintptr_t end() const { return begin + nbytes; }
};

enum class HostKind { pageable, pinned, mixed };

struct HostRange {
  HostKind kind;
  Registration* registration;  ///< when pinned
};

class HostMemory {
 public:
  HostRange classify(std::uintptr_t address, std::size_t nbytes);
  /// True if any page of the range is locked already.
  bool overlaps(std::uintptr_t address, std::size_t nbytes) const;
  Registration& add(std::uintptr_t address, std::size_t nbytes, unsigned flags, bool allocated, u64 context_id,
                    Device device);
  Registration* starting_at(std::uintptr_t address);
  bool is_window(std::uintptr_t address) const { return windows_.contains(address); }
  /// Whose window that is; null if nobody's.
  const Registration* seen_at(std::uintptr_t address) const;
  void remove(std::uintptr_t address) { by_address_.erase(address); }
  /// End what a context has made. Memory that the driver allocated is filled with poison and stays mapped until the
  /// next reset of the world: a real one would be gone, and reading it would end the process.
  void drop_with(u64 context_id);
  std::uint64_t locked_bytes() const;
  std::map<std::uintptr_t, Registration>& all() { return by_address_; }
  void clear();

 private:
  std::map<std::uintptr_t, Registration> by_address_;
  std::vector<Registration> retired_;
  Windows windows_;
  u64 last_ = 0;
};

}  // namespace fake
