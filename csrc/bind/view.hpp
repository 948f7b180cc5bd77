// The base of an array that shares a torch tensor's memory. It holds the storage, not the tensor: whatever happens to
// the tensor (`del`, `set_`, `.data =`, `.to()`), the memory stays. The tensor is remembered weakly, so that from_numpy
// can give back an alias that shares its version counter.
#pragma once

#include "bind/py_ref.hpp"

namespace ferry::bind {

// New ReadOnlyView. `origin` is a weak reference to the tensor, or a detached alias of one that was about to die.
PyRef make_view(PyRef storage, PyRef origin);

bool is_view(PyObject* object) noexcept;

// Adds the type to the module; called once.
bool add_view_type(PyObject* module);

}  // namespace ferry::bind
