// A Pending in the hands of Python, which lets go of the GIL to wait.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "bind/device_path.hpp"
#include "bind/device_source.hpp"
#include "bind/fetch.hpp"
#include "bind/gil.hpp"
#include "bind/waiting.hpp"

namespace ferry::bind {

struct PendingCopies {
  std::shared_ptr<const Pending> pending;

  [[nodiscard]] bool done() const {
    const GilReleased released(true);
    return pending->done();
  }
  [[nodiscard]] bool wait(std::optional<double> timeout_s) const {
    if (!timeout_s) {
      waiting([this] { pending->wait(); });
      return true;
    }
    const GilReleased released(true);
    const auto time = std::chrono::duration<double>(std::min(*timeout_s, 1e9));
    return pending->wait_for(std::chrono::duration_cast<std::chrono::nanoseconds>(time));
  }
  void add_callback(const pybind11::object& call) const {
    const std::shared_ptr<void> held = shared_owner(PyRef::borrow(call.ptr()));
    call_when_done(pending, [held] { call_from_any_thread(static_cast<PyObject*>(held.get())); });
  }
};

}  // namespace ferry::bind
