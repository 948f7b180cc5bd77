// The objects behind the driver's handles, and the table that knows which of them are alive.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "types.hpp"

namespace fake {
struct Capture;
}

struct CUctx_st {
  fake::u64 id = 0;  ///< of this life; a reset context has the same address and another id
  fake::Device device = 0;
  bool is_green = false;
  int references = 0;
  fake::Result error = fake::success;  ///< sticks until the context is reset
  fake::Stream legacy = nullptr;
  std::map<fake::u64, fake::Stream> per_thread;

  bool alive() const { return references > 0; }
  std::string name() const { return (is_green ? "green#" : "ctx#") + std::to_string(device); }
};

struct CUstream_st {
  fake::u64 number = 0;
  std::string name;
  fake::Context context = nullptr;
  fake::u64 context_id = 0;
  bool blocking = true;
  bool is_legacy = false;
  bool created = false;  ///< by cuStreamCreate, not one of the special ones
  int priority = 0;
  unsigned flags = 0;
  fake::u64 last = 0;  ///< the newest operation
  fake::Capture* capture = nullptr;
  std::vector<fake::GraphNode> dependencies;  ///< of the next node, while capturing
  int put_off = 0;                            ///< how often a query was answered "not ready" in a row
};

struct CUevent_st {
  fake::u64 number = 0;
  fake::Context context = nullptr;
  fake::u64 context_id = 0;
  unsigned flags = 0;
  fake::u64 captured = 0;              ///< the operation that stands for the recorded state; 0 means never recorded
  fake::u64 capture = 0;               ///< the capture it was recorded in last; 0 means in none
  std::vector<fake::GraphNode> nodes;  ///< what it stands for in that capture
  int put_off = 0;

  std::string name() const { return "event#" + std::to_string(number); }
};

namespace fake {

/// Owns objects of one kind. A removed one keeps its address to itself, or gives it to the next when told to.
template <class T>
class Handles {
 public:
  T* add(bool recur) {
    if (recur && !spare_.empty()) {
      T* again = spare_.back();
      spare_.pop_back();
      *again = T{};
      live_.insert(again);
      return again;
    }
    owned_.push_back(std::make_unique<T>());
    live_.insert(owned_.back().get());
    return owned_.back().get();
  }
  void remove(T* handle) {
    live_.erase(handle);
    spare_.push_back(handle);
  }
  bool knows(T* handle) const { return live_.contains(handle); }
  bool was(T* handle) const {
    for (T* gone : spare_) {
      if (gone == handle) return true;
    }
    return false;
  }
  const std::set<T*>& live() const { return live_; }
  void clear() {  // the memory stays: stale handles of an earlier test must not come alive again
    for (T* handle : live_) spare_.push_back(handle);
    live_.clear();
    retired_.insert(retired_.end(), spare_.begin(), spare_.end());
    spare_.clear();
  }

 private:
  std::vector<std::unique_ptr<T>> owned_;
  std::set<T*> live_;
  std::vector<T*> spare_, retired_;
};

}  // namespace fake
