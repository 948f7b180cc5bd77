// Keyword arguments of a METH_FASTCALL function: names are interned once and compared by pointer first.
#pragma once

#include <array>
#include <cstddef>

#include "bind/py_ref.hpp"

namespace ferry::bind {

// The one positional argument that our entry points take.
inline PyObject* positional_argument(const char* function, PyObject* const* args, Py_ssize_t nargs) {
  if (nargs == 1) return args[0];
  PyErr_Format(PyExc_TypeError, "%s() takes exactly one positional argument (%zd given)", function, nargs);
  throw PythonErrorSet{};
}

template <std::size_t Count>
class KeywordParser {
 public:
  explicit KeywordParser(std::array<const char*, Count> names) : names_(names) {}

  // Stores the values of the given names (borrowed) into their slots.
  void read(const char* function, PyObject* const* values, PyObject* given_names,
            const std::array<PyObject**, Count>& slots) {
    intern();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given_names); ++i) {
      PyObject* name = PyTuple_GET_ITEM(given_names, i);
      const std::size_t index = find(name);
      if (index == Count) {
        PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function, name);
        throw PythonErrorSet{};
      }
      *slots[index] = values[i];
    }
  }

 private:
  void intern() {
    if (interned_[0] != nullptr) return;
    for (std::size_t i = Count; i-- > 0;) interned_[i] = checked(PyUnicode_InternFromString(names_[i])).release();
  }

  [[nodiscard]] std::size_t find(PyObject* name) const {
    for (std::size_t i = 0; i < Count; ++i) {
      if (interned_[i] == name) return i;
    }
    for (std::size_t i = 0; i < Count; ++i) {
      if (PyUnicode_CompareWithASCIIString(name, names_[i]) == 0) return i;
    }
    return Count;
  }

  std::array<const char*, Count> names_;
  std::array<PyObject*, Count> interned_{};
};

}  // namespace ferry::bind
