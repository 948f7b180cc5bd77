// User objects: counted by graphs, and destroyed by a thread of the driver, some time after the last reference went.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "engine.hpp"
#include "handles.hpp"
#include "report.hpp"
#include "types.hpp"

struct CUuserObject_st {
  fake::u64 number = 0;
  void* data = nullptr;
  fake::HostFunction destroy = nullptr;
  std::int64_t references = 0;
};

namespace fake {

class UserObjects {
 public:
  UserObjects(Engine& engine, Report& report, std::mutex& mutex) : engine_(engine), report_(report), mutex_(mutex) {}

  UserObject create(void* data, HostFunction destroy, std::int64_t references);
  bool knows(UserObject object) const { return handles_.knows(object); }
  /// Negative counts give references back. The last one gone, the destructor is called on the driver's own thread.
  void count(UserObject object, std::int64_t more);
  std::int64_t live() const { return static_cast<std::int64_t>(handles_.live().size()); }
  /// Wait until every destructor that is due has returned.
  void wait_until_idle(Lock& lock);
  void reset(Lock& lock);
  /// In a forked child, where the driver's thread is not.
  void forget_worker();

 private:
  struct Due {
    void* data;
    HostFunction destroy;
  };
  void work();

  Engine& engine_;
  Report& report_;
  std::mutex& mutex_;
  std::condition_variable changed_;
  Handles<CUuserObject_st> handles_;
  std::deque<Due> due_;
  u64 last_ = 0;
  bool started_ = false, busy_ = false;
};

/// References that a graph holds; they go with it.
class References {
 public:
  explicit References(UserObjects& objects) : objects_(objects) {}
  References(const References&) = delete;
  References& operator=(const References&) = delete;
  ~References();

  /// Take references that were counted already.
  void adopt(UserObject object, std::int64_t count) { counts_[object] += count; }
  void retain(UserObject object, std::int64_t count);
  void retain_all(const References& others);

 private:
  UserObjects& objects_;
  std::map<UserObject, std::int64_t> counts_;
};

/// True on the thread that calls destructors, while it does: no call of the driver is allowed there.
bool& in_destructor();

}  // namespace fake
