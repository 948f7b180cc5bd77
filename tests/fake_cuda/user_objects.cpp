#include "user_objects.hpp"

#include <chrono>
#include <thread>

namespace fake {

namespace {

constexpr auto destructor_patience = std::chrono::seconds(30);  // no test may hang for ever

}  // namespace

bool& in_destructor() {
  static thread_local bool inside = false;
  return inside;
}

UserObject UserObjects::create(void* data, HostFunction destroy, std::int64_t references) {
  UserObject made = handles_.add(false);
  made->number = ++last_;
  made->data = data;
  made->destroy = destroy;
  made->references = references;
  show_to_sanitizer();
  order_before(data);
  hide_from_sanitizer();
  return made;
}

void UserObjects::count(UserObject object, std::int64_t more) {
  if (!handles_.knows(object)) return;  // of a world before the last reset
  object->references += more;
  if (object->references > 0) return;
  handles_.remove(object);
  show_to_sanitizer();
  order_before(object->data);
  hide_from_sanitizer();
  due_.push_back({object->data, object->destroy});
  if (!started_) {
    started_ = true;
    std::thread([this] { work(); }).detach();  // the driver's threads are there until the process ends
  }
  changed_.notify_all();
}

void UserObjects::work() {
  Lock lock(mutex_);
  while (true) {
    if (due_.empty() || engine_.held()) {
      changed_.wait_for(lock.native(), std::chrono::milliseconds(due_.empty() ? 1000 : 5));
      continue;
    }
    const Due next = due_.front();
    due_.pop_front();
    busy_ = true;
    lock.unlock();
    order_after(next.data);
    in_destructor() = true;
    next.destroy(next.data);
    in_destructor() = false;
    lock.lock();
    busy_ = false;
    ++report_.counts["user_objects_destroyed"];
    changed_.notify_all();
  }
}

void UserObjects::wait_until_idle(Lock& lock) {
  const auto deadline = std::chrono::steady_clock::now() + destructor_patience;
  while (busy_ || !due_.empty()) {
    if (changed_.wait_until(lock.native(), deadline) == std::cv_status::timeout) {
      report_.violation("a user object's destructor did not return for 30 s");
      return;
    }
  }
}

void UserObjects::reset(Lock& lock) {
  due_.clear();
  wait_until_idle(lock);
  handles_.clear();
  last_ = 0;
}

void UserObjects::forget_worker() {
  due_.clear();
  started_ = busy_ = false;
}

References::~References() {
  for (const auto& [object, held] : counts_) objects_.count(object, -held);
}

void References::retain(UserObject object, std::int64_t count) {
  objects_.count(object, count);
  adopt(object, count);
}

void References::retain_all(const References& others) {
  for (const auto& [object, held] : others.counts_) retain(object, held);
}

}  // namespace fake
