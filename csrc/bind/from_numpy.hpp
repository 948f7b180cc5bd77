// The hot path from an array to a torch tensor.
#pragma once

#include "bind/py_ref.hpp"

namespace ferry::bind {

PyObject* from_numpy(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* keyword_names) noexcept;
extern const char from_numpy_doc[];

}  // namespace ferry::bind
