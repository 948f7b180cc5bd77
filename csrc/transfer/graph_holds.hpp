// Keeps alive what graphs touch at every replay, until the driver says that a graph is gone.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>

#include "cuda/driver_functions.hpp"
#include "cuda/fork_generation.hpp"
#include "transfer/abandoned.hpp"

namespace ferry {

// Any thread.
class GraphHolds {
 public:
  GraphHolds();
  GraphHolds(const GraphHolds&) = delete;
  GraphHolds& operator=(const GraphHolds&) = delete;
  ~GraphHolds();  // what is still held stays for good

  // Holds these until the graph, all that was instantiated from it, and their launches are gone. The graph may still be
  // in the making. False where the driver never tells: then they stay for good. Throws Error; the graph does not know
  // of them then.
  bool retain(const cuda::Functions& functions, cuda::CUgraph graph, Holds holds);
  // Lets go of what belonged to graphs that are gone. Asks nobody and never waits.
  void reap() noexcept;
  // How many graphs hold something, as far as reap() has noticed.
  [[nodiscard]] std::size_t graphs() const noexcept;

 private:
  struct Entry;

  const std::uint32_t generation_ = cuda::fork_generation();
  mutable std::mutex mutex_;
  std::list<Entry> entries_;
};

}  // namespace ferry
