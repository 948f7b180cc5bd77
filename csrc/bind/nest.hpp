// One walk over a nest: containers are opened, leaves converted, and the nest built again around them.
#pragma once

#include "bind/py_ref.hpp"

namespace ferry::bind {

class LeafConverter {
 public:
  // Nothing for what is not plainly a leaf, or not one that is converted here.
  virtual PyRef plain_leaf(PyObject* leaf) = 0;
  // Any other object that is no container; what is no array comes back as it is.
  virtual PyRef odd_leaf(PyObject* leaf) = 0;
  // Before anybody else sees what was converted so far.
  virtual void settle() {}

 protected:
  ~LeafConverter() = default;
};

// The same leaf object converts once. An error says which leaf it concerns.
PyRef convert_nest(PyObject* nest, LeafConverter& leaves);

// A dict, list or tuple, or an instance of a subclass.
bool is_container(PyObject* object) noexcept;

}  // namespace ferry::bind
