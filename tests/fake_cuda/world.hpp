// Everything the fake driver knows, behind one lock.
#pragma once

#include <sys/types.h>

#include <array>
#include <mutex>
#include <string>

#include "arena.hpp"
#include "capture.hpp"
#include "engine.hpp"
#include "faults.hpp"
#include "graph.hpp"
#include "handles.hpp"
#include "host_memory.hpp"
#include "libraries.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "user_objects.hpp"

namespace fake {

inline constexpr Device most_devices = 8;

/// What belongs to one thread: its stack of contexts, and how careful its captures are.
struct ThreadState {
  u64 number = 0, epoch = 0;
  std::vector<Context> stack;
  std::int64_t pushes = 0;  ///< pushes less pops
  int capture_mode = 0;     ///< global, thread local, relaxed

  ~ThreadState();
};

struct World {
  World();

  std::mutex mutex;
  Report report;
  Arena arena;
  Engine engine;
  Settings settings;
  Faults faults;
  HostMemory host;
  std::array<CUctx_st, most_devices> primary, green;
  Handles<CUstream_st> streams;
  Handles<CUevent_st> events;
  UserObjects user_objects;
  Handles<CUgraph_st> graphs;
  Handles<CUgraphExec_st> execs;
  Captures captures;
  Libraries programs;
  bool initialized = false;
  pid_t owner = 0;
  u64 epoch = 1, last_context = 0, last_stream = 0, last_event = 0, last_graph = 0, last_exec = 0;
  std::int64_t pushed = 0;

  void reset(Lock& lock);

  ThreadState& thread();
  Context current();
  std::vector<const CUctx_st*> contexts() const;
  bool knows(Context context) const;
  /// The context itself, and for a primary one its green one: what calls that take in a context take in.
  std::vector<Context> with_green(Context context);
  /// A green context of the device, made at the first call, which retains the primary one.
  CUctx_st& green_context(Device device);
  CUctx_st& primary_of(Context context) { return primary[static_cast<std::size_t>(context->device)]; }
  bool may_share_events(Context one, Context other) const;
  void activate(CUctx_st& context);
  /// The end of a context's life: its streams, events and memory are gone, its pending work is abandoned.
  void destroy(CUctx_st& context, Lock& lock);
  /// Registrations and allocations of host memory that the context has made.
  void drop_host_memory(u64 context_id, Lock& lock);
  void fail(Context context, Result code, Lock& lock);

  /// Follow a handle, the special ones included, to its stream.
  Result identify(Stream handle, Stream& stream);
  /// The same for a stream that is to be used: captures may forbid it.
  Result resolve(Stream handle, Stream& stream);
  Result resolve(Event handle, Event& event);
  /// Put work at the end of a stream, behind what it must wait for; a capture gets it instead, and the answer is 0.
  u64 submit(Stream stream, Operation operation, Lock& lock);
  void submit_to_capture(Stream stream, Operation operation);
  /// What stands for "all work of this stream so far".
  std::vector<u64> tail_of(Stream stream) const;

  std::string name_of(Stream handle) const;
  std::string name_of(Event handle) const;
  std::string name_of(Context handle) const;
  std::string name_of_memory(std::uintptr_t address);
  /// Registered memory that was unmapped.
  void look_for_unmapped();
};

/// Never destroyed: threads may call until the very end of the process.
World& world();

/// True while the calling thread is in a function whose NULL stream is the thread's own.
bool& null_is_per_thread();

/// True for calls of the product; the test's own may do what is forbidden.
inline bool from_product() { return !caller_is_test(); }

}  // namespace fake
