// What questions hold for as long as they are asked. Each gives back what it took; errors on the way out are ignored.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "lab.hpp"

namespace ferry::litmus {

inline constexpr unsigned portable_and_mapped = cuda::memhostregister_portable | cuda::memhostregister_devicemap;
inline const auto legacy = reinterpret_cast<cuda::CUstream>(1);
inline const auto per_thread = reinterpret_cast<cuda::CUstream>(2);

inline constexpr unsigned blocking = 0;
inline constexpr unsigned non_blocking = cuda::stream_non_blocking;

class Stream {
 public:
  explicit Stream(const Lab& lab, unsigned flags = non_blocking) : lab_(lab) {
    lab.must(lab.driver().cuStreamCreateWithPriority(&stream_, flags, 0), "cuStreamCreateWithPriority");
  }
  ~Stream() { destroy(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cuda::CUstream() const { return stream_; }
  cuda::CUresult destroy() {
    const cuda::CUresult code = stream_ != nullptr ? lab_.driver().cuStreamDestroy(stream_) : cuda::success;
    if (code == cuda::success) stream_ = nullptr;
    return code;
  }

 private:
  const Lab& lab_;
  cuda::CUstream stream_ = nullptr;
};

class Event {
 public:
  explicit Event(const Lab& lab, unsigned flags = cuda::event_disable_timing) : lab_(lab) {
    lab.must(lab.driver().cuEventCreate(&event_, flags), "cuEventCreate");
  }
  ~Event() { destroy(); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cuda::CUevent() const { return event_; }
  cuda::CUresult destroy() {
    const cuda::CUresult code = event_ != nullptr ? lab_.driver().cuEventDestroy(event_) : cuda::success;
    if (code == cuda::success) event_ = nullptr;
    return code;
  }
  void record(cuda::CUstream stream) const { lab_.must(lab_.driver().cuEventRecord(event_, stream), "cuEventRecord"); }
  void wait() const { lab_.must(lab_.driver().cuEventSynchronize(event_), "cuEventSynchronize"); }

 private:
  const Lab& lab_;
  cuda::CUevent event_ = nullptr;
};

class DeviceBytes {
 public:
  DeviceBytes(const Lab& lab, std::size_t nbytes) : lab_(lab) {
    lab.must(lab.driver().cuMemAlloc(&pointer_, nbytes), "cuMemAlloc");
  }
  ~DeviceBytes() {
    if (pointer_ == 0) return;
    lab_.settle();
    lab_.driver().cuMemFree(pointer_);
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  operator cuda::CUdeviceptr() const { return pointer_; }
  cuda::CUresult free() {
    const cuda::CUresult code = lab_.driver().cuMemFree(pointer_);
    if (code == cuda::success) pointer_ = 0;
    return code;
  }

 private:
  const Lab& lab_;
  cuda::CUdeviceptr pointer_ = 0;
};

// Ordinary memory in pages of its own, all zero.
class Pages {
 public:
  explicit Pages(std::size_t nbytes, int protection = PROT_READ | PROT_WRITE) : nbytes_(nbytes) {
    memory_ = ::mmap(nullptr, nbytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw Unprepared("mmap failed");
  }
  ~Pages() { ::munmap(memory_, nbytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] unsigned char* data() const { return static_cast<unsigned char*>(memory_); }
  [[nodiscard]] std::size_t size() const { return nbytes_; }

 private:
  std::size_t nbytes_;
  void* memory_;
};

class Registration {
 public:
  Registration(const Lab& lab, void* data, std::size_t nbytes, unsigned flags = portable_and_mapped)
      : lab_(lab), data_(data) {
    lab.must(lab.driver().cuMemHostRegister(data, nbytes, flags), "cuMemHostRegister");
  }
  ~Registration() {
    if (data_ == nullptr) return;
    lab_.settle();
    lab_.driver().cuMemHostUnregister(data_);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  cuda::CUresult end() {
    const cuda::CUresult code = lab_.driver().cuMemHostUnregister(data_);
    if (code == cuda::success) data_ = nullptr;
    return code;
  }

 private:
  const Lab& lab_;
  void* data_;
};

// Registered pages, as the product makes them.
class Pinned {
 public:
  Pinned(const Lab& lab, std::size_t nbytes) : pages_(nbytes), registration_(lab, pages_.data(), nbytes) {}
  [[nodiscard]] unsigned char* data() const { return pages_.data(); }
  [[nodiscard]] std::size_t size() const { return pages_.size(); }

 private:
  Pages pages_;
  Registration registration_;
};

// Memory that the driver allocates.
class DriverPinned {
 public:
  DriverPinned(const Lab& lab, std::size_t nbytes, unsigned flags = portable_and_mapped) : lab_(lab) {
    lab.must(lab.driver().cuMemHostAlloc(&memory_, nbytes, flags), "cuMemHostAlloc");
  }
  ~DriverPinned() {
    if (memory_ == nullptr) return;
    lab_.settle();
    lab_.driver().cuMemFreeHost(memory_);
  }
  DriverPinned(const DriverPinned&) = delete;
  DriverPinned& operator=(const DriverPinned&) = delete;
  [[nodiscard]] unsigned char* data() const { return static_cast<unsigned char*>(memory_); }
  cuda::CUresult free() {
    const cuda::CUresult code = lab_.driver().cuMemFreeHost(memory_);
    if (code == cuda::success) memory_ = nullptr;
    return code;
  }

 private:
  const Lab& lab_;
  void* memory_ = nullptr;
};

// While it lives, no context is current to this thread.
class WithoutContext {
 public:
  explicit WithoutContext(const Lab& lab) : lab_(lab) {
    lab.must(lab.driver().cuCtxPopCurrent(&popped_), "cuCtxPopCurrent");
  }
  ~WithoutContext() { lab_.driver().cuCtxPushCurrent(popped_); }
  WithoutContext(const WithoutContext&) = delete;
  WithoutContext& operator=(const WithoutContext&) = delete;

 private:
  const Lab& lab_;
  cuda::CUcontext popped_ = nullptr;
};

}  // namespace ferry::litmus
