// A context that is current for a moment.
#pragma once

#include "cuda/driver.hpp"

namespace ferry::cuda {

// Pushed unless it is current already, and popped in the end. Never throws: ask code(). Any call may be answered by the
// failure of earlier work although it was made; so what was pushed is found out by asking, and popped in any case. Not
// in a forked child, where no call may be made.
class PushedContext {
 public:
  explicit PushedContext(const Driver& driver) noexcept : driver_(driver) {}  // none yet
  PushedContext(const Driver& driver, CUcontext context) noexcept : driver_(driver) { push(context); }
  PushedContext(const PushedContext&) = delete;
  PushedContext& operator=(const PushedContext&) = delete;
  ~PushedContext();

  void push(CUcontext context) noexcept;  // once
  [[nodiscard]] CUresult code() const noexcept { return code_; }
  [[nodiscard]] bool pushed() const noexcept { return pushed_; }

 private:
  [[nodiscard]] bool is_current(const Functions& functions) const noexcept;

  const Driver& driver_;
  CUcontext context_ = nullptr;
  CUresult code_ = success;
  bool pushed_ = false;
};

}  // namespace ferry::cuda
