// The hot path from a tensor to an array.
#pragma once

#include "bind/exchange.hpp"
#include "bind/py_ref.hpp"
#include "transfer/plan.hpp"

namespace ferry::bind {

// The keyword arguments of to_numpy; borrowed for the length of the call.
struct ToNumpyArguments {
  PyObject* copy = Py_None;
  PyObject* dtype = Py_None;
  PyObject* casting = nullptr;  // nullptr: not given
  PyObject* order = nullptr;
  PyObject* out = Py_None;
  PyObject* stream = Py_None;
  PyObject* pinned = nullptr;

  // What was given is what the hot path understands, and is in `request`.
  bool is_simple = true;
  bool leaf_only = false;  // a destination, a dtype or a casting rule is another for each leaf of a nest
  Request request;
};

// The array for one tensor of a type that the hot path knows, or nothing: then Python code decides.
PyRef leaf_to_numpy(PyObject* leaf, const ToNumpyArguments& arguments);

// Reads a tensor of exact type torch.Tensor or Parameter through its exchange table.
PyRef torch_leaf(PyObject* tensor, const FastType& type, const ToNumpyArguments& arguments);

PyObject* to_numpy(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* keyword_names) noexcept;

extern const char to_numpy_doc[];

}  // namespace ferry::bind
