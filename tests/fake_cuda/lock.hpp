// The one lock of the fake driver. Under a thread sanitizer it must not order the product's threads among each other: a
// real driver promises no such thing, and races would hide behind it.
#pragma once

#include <condition_variable>
#include <mutex>

#if !defined(__SANITIZE_THREAD__)
extern "C" {
__attribute__((weak)) void AnnotateIgnoreSyncBegin(const char*, int);
__attribute__((weak)) void AnnotateIgnoreSyncEnd(const char*, int);
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char*, int);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char*, int);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char*, int);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char*, int);
__attribute__((weak)) void __tsan_acquire(void*);
__attribute__((weak)) void __tsan_release(void*);
}
#endif

namespace fake {

#if defined(__SANITIZE_THREAD__)  // the fake itself is being checked: its lock counts
inline void hide_from_sanitizer() {}
inline void show_to_sanitizer() {}
inline void order_before(void*) {}
inline void order_after(void*) {}
#else
inline void hide_from_sanitizer() {
  if (!AnnotateIgnoreSyncBegin) return;
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}
inline void show_to_sanitizer() {
  if (!AnnotateIgnoreSyncEnd) return;
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
/// What this thread did so far happens before whoever calls `order_after` with the same key.
inline void order_before(void* key) {
  if (__tsan_release) __tsan_release(key);
}
inline void order_after(void* key) {
  if (__tsan_acquire) __tsan_acquire(key);
}
#endif

class Lock {
 public:
  explicit Lock(std::mutex& mutex) : lock_(mutex, std::defer_lock) { lock(); }
  ~Lock() {
    if (lock_.owns_lock()) unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() {
    hide_from_sanitizer();
    lock_.lock();
  }
  void unlock() {
    lock_.unlock();
    show_to_sanitizer();
  }
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace fake
