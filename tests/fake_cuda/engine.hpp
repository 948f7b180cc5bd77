// Accepted device work: what must come before what, and when it runs. Nothing runs because it was enqueued; the
// schedule decides, within what the documentation promises.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "arena.hpp"
#include "lock.hpp"
#include "report.hpp"
#include "store_log.hpp"
#include "types.hpp"

namespace fake {

/// What a kernel that has run leaves to be done: its stores to host memory arrive one by one, and it ends after them.
struct Landing {
  std::vector<Piece> pieces;
  std::size_t landed = 0;
  Result failed = success;

  bool complete() const { return landed == pieces.size(); }
  void land(std::size_t count);
  /// How many a host may have seen next; often just up to a store with release, when it looks for what must be there.
  std::size_t some(std::mt19937_64& random) const;
};

/// Memory that an operation reads or writes.
struct Access {
  std::uintptr_t address = 0;
  std::size_t nbytes = 0;
  bool writes = false;
  u64 allocation = 0;    ///< number of the device allocation, or 0
  u64 registration = 0;  ///< number of the host registration, or 0
  u64 library = 0;       ///< number of the library whose kernel it is, or 0
};

struct Operation {
  std::string name;
  u64 context_id = 0;
  std::vector<u64> after;                            ///< operations that must be done before
  std::vector<Access> accesses;                      ///< empty for records and waits
  std::function<void()> accepted;                    ///< when the driver takes it, before it returns to the caller
  std::function<void()> body;                        ///< moves the bytes; may run without the lock
  std::function<std::shared_ptr<Landing>()> kernel;  ///< the same, in the place of `body`, with stores that land later
  std::shared_ptr<Landing> landing;                  ///< once it has run
  std::function<void()> finally;                     ///< bookkeeping, under the lock, when it is done
  bool running = false;
  u64 stream = 0;  ///< whose queue it fills
};

enum class Schedule { lazy, eager, shuffled, threaded };

class Engine {
 public:
  Engine(Arena& arena, Report& report, std::mutex& mutex) : arena_(arena), report_(report), mutex_(mutex) {}

  u64 enqueue(Operation operation, Lock& lock);
  u64 next_id() const { return last_ + 1; }
  bool is_done(u64 id) const { return !pending_.contains(id); }
  /// Let everything that `id` depends on run, and `id`. Waits while the device is held.
  void finish(u64 id, Lock& lock);
  void finish_all(Lock& lock);
  /// The caller was told that `id` is done: what it did is visible to the caller from here on.
  void saw_done(u64 id);
  /// What the schedule does at any call of the driver.
  void progress(Lock& lock);
  /// The host has asked for `id` and is told to wait: kernels on the way there may show a part of what they store.
  void show_a_part(u64 id, Lock& lock);
  /// Abandon the work of a context, as after an error that sticks.
  void abandon(u64 context_id, Lock& lock);
  /// The same for what does not run right now, without waiting for what does.
  void drop(u64 context_id);

  void set_schedule(Schedule schedule, u64 seed, Lock& lock);
  Schedule schedule() const { return schedule_; }
  /// While held no work makes progress, as if a long kernel ran.
  void hold(bool held, Lock& lock);
  bool held() const { return held_; }

  /// Names of the pending operations that touch a range of memory, a registration or an allocation.
  std::vector<std::string> pending_on(const std::function<bool(const Access&)>& touches) const;
  /// The same, without what is done for certain when all of `tail` is.
  std::vector<std::string> pending_beside(const std::vector<u64>& tail,
                                          const std::function<bool(const Access&)>& touches) const;
  /// Wait until none of them is running right now.
  void wait_until_idle(const std::function<bool(const Access&)>& touches, Lock& lock);
  /// A registration is gone: what is still to come there must not write into memory that is no longer ours.
  void orphan(u64 registration);
  bool chance(unsigned of) { return random_() % of == 0; }
  std::int64_t pending() const { return static_cast<std::int64_t>(pending_.size()); }
  std::size_t pending_in(u64 stream) const;
  void finish_oldest(u64 stream, Lock& lock);
  /// A number for the order in which the work ran: equal orders give equal numbers.
  u64 order_seen() const { return order_seen_; }
  void reset(Lock& lock);
  /// In a forked child, where the threads of the parent are not.
  void forget_workers();

  /// Called before an operation runs; an answer other than success makes its context fail instead.
  std::function<Result(const Operation&)> fault_at_execution;
  std::function<void(u64 context_id, Result)> context_failed;

 private:
  bool is_ready(const Operation& operation) const;
  std::vector<u64> needed_for(std::vector<u64> ids) const;
  std::vector<u64> ready() const;
  void run(u64 id, Lock& lock);
  /// The same, but a kernel may stay behind with stores that have not landed.
  void run_a_part(u64 id, Lock& lock);
  /// False where there is nothing more to do with it.
  bool begin(u64 id, Lock& lock);
  void carry_out(u64 id, Lock& lock);
  void land_slowly(Operation& operation, Lock& lock);
  void end(u64 id);
  bool may_run(const Operation& operation);
  void work(u64 generation);
  void stop_workers(Lock& lock);

  Arena& arena_;
  Report& report_;
  std::mutex& mutex_;
  std::condition_variable changed_;
  std::map<u64, Operation> pending_;
  u64 last_ = 0, order_seen_ = 0, counted_from_ = 0, generation_ = 0;
  Schedule schedule_ = Schedule::lazy;
  std::mt19937_64 random_;
  std::vector<std::thread> workers_;
  std::vector<u64> orphaned_;
  bool held_ = false;
  // Addresses that stand for "accepted" and "done" where a thread sanitizer is told about order.
  char keys_[2][4096] = {};
  void* accepted_key(u64 id) { return &keys_[0][id % 4096]; }
  void* done_key(u64 id) { return &keys_[1][id % 4096]; }
};

/// True while the calling thread runs an operation and holds the lock meanwhile.
bool& runs_under_lock();

}  // namespace fake
