// The one place where C++ errors become Python errors.
#pragma once

#include <exception>

#include "bind/py_ref.hpp"
#include "core/error.hpp"

namespace ferry::bind {

// Sets the Python error that stands for `error`: the class in tensorferry._errors, made from the three parts.
void set_python_error(const Error& error) noexcept;

// Runs `body`, which returns an owned object; whatever it throws becomes a Python error and nullptr.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const PythonErrorSet&) {
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace ferry::bind
