// A context other than the current one: another device's, or a second one on the same device.
#pragma once

#include <memory>

#include "resources.hpp"

namespace ferry::litmus {

class SecondContext {
 public:
  explicit SecondContext(const Lab& lab) : lab_(lab) {
    const Driver& d = lab.driver();
    if (lab.device_count() > 1) {
      lab.must(d.cuDeviceGet(&device_, 1), "cuDeviceGet");
      lab.must(d.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
      return;
    }
    if (d.cuCtxCreate == nullptr || d.cuCtxDestroy == nullptr) throw NotAsked("there is no second context");
    cuda::CUcontext pushed = nullptr;
    lab.must(d.cuCtxCreate(&context_, 0, lab.device()), "cuCtxCreate");
    created_ = true;
    lab.must(d.cuCtxPopCurrent(&pushed), "cuCtxPopCurrent");
  }
  ~SecondContext() {
    if (created_) {
      lab_.driver().cuCtxDestroy(context_);
    } else {
      lab_.driver().cuDevicePrimaryCtxRelease(device_);
    }
  }
  SecondContext(const SecondContext&) = delete;
  SecondContext& operator=(const SecondContext&) = delete;
  operator cuda::CUcontext() const { return context_; }

 private:
  const Lab& lab_;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  bool created_ = false;
};

// While it lives, `context` is current.
class Pushed {
 public:
  Pushed(const Lab& lab, cuda::CUcontext context) : lab_(lab) {
    lab.must(lab.driver().cuCtxPushCurrent(context), "cuCtxPushCurrent");
  }
  ~Pushed() {
    cuda::CUcontext popped = nullptr;
    lab_.driver().cuCtxPopCurrent(&popped);
  }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  const Lab& lab_;
};

}  // namespace ferry::litmus
