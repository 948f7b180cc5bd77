// An owned reference to a Python object.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <utility>

namespace ferry::bind {

class PyRef {
 public:
  PyRef() noexcept = default;
  // Takes over a reference the caller owns; nullptr is allowed (an error is then set).
  static PyRef steal(PyObject* object) noexcept { return PyRef(object); }
  static PyRef borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return PyRef(object);
  }
  PyRef(const PyRef& other) noexcept : object_(other.object_) { Py_XINCREF(object_); }
  PyRef(PyRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  PyRef& operator=(PyRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(object_); }

  [[nodiscard]] PyObject* get() const noexcept { return object_; }
  [[nodiscard]] PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  explicit PyRef(PyObject* object) noexcept : object_(object) {}
  PyObject* object_ = nullptr;
};

// A Python error is set; unwinds C++ frames up to the entry point.
struct PythonErrorSet {};

// The object, or PythonErrorSet when it is nullptr.
inline PyRef checked(PyObject* owned) {
  if (owned == nullptr) throw PythonErrorSet{};
  return PyRef::steal(owned);
}

}  // namespace ferry::bind
