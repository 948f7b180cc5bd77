// Numbers of a step's metrics that are on the host already.
#pragma once

#include "bind/py_ref.hpp"

namespace ferry::bind {

// A dict with the keys of `metrics`, in their order, and the value that each has now: numbers as they are, tensors of
// one element on the host as Python numbers. What takes Python to read keeps its place and is added to the list
// `others` by its key; keys that are no str are, too. `spares` is a list of dicts that were returned before: one that
// nobody else holds any more, of the same keys, is filled again, and so are its floats. Throws PythonErrorSet.
[[nodiscard]] PyRef read_metrics(PyObject* metrics, PyObject* others, PyObject* spares);

}  // namespace ferry::bind
