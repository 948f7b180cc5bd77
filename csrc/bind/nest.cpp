#include "bind/nest.hpp"

#include <unordered_set>
#include <utility>
#include <vector>

#include "bind/errors.hpp"
#include "bind/gil.hpp"
#include "bind/identity_map.hpp"
#include "bind/numpy_api.hpp"
#include "bind/python_function.hpp"

namespace ferry::bind {
namespace {

constinit PythonFunction name_leaf_function("tensorferry._nest", "name_leaf");
constinit PythonFunction open_node_function("tensorferry._nest", "open_node");

// Containers that are taken apart and built here.
bool is_plain_container(PyObject* object) noexcept {
  return PyDict_CheckExact(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

// None, numbers and text are never arrays; the commonest leaves besides tensors.
bool passes_through(PyObject* leaf) noexcept {
  return leaf == Py_None || PyUnicode_CheckExact(leaf) || PyFloat_CheckExact(leaf) || PyLong_CheckExact(leaf) ||
         PyBool_Check(leaf) || PyBytes_CheckExact(leaf);
}

class Walk {
 public:
  explicit Walk(LeafConverter& leaves) : leaves_(leaves) {}

  PyRef convert(PyObject* node) {
    if (passes_through(node)) return PyRef::borrow(node);
    if (!is_plain_container(node)) {
      if (PyObject* known = done_.find(node)) return PyRef::borrow(known);
      in_leaf_ = true;
      PyRef array = leaves_.plain_leaf(node);
      in_leaf_ = false;
      if (array) return remember(node, std::move(array));
    }
    return descend(node);
  }

  // Puts the place of the leaf that failed in front of the message of the Python error that is set.
  void name_leaf() {
    if (!in_leaf_ || trail_.empty()) return;
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    try {
      PyObject* name = name_leaf_function.get();
      const PyRef trail = checked(PyList_New(0));
      for (auto step = trail_.rbegin(); step != trail_.rend(); ++step) {
        const PyRef pair = checked(Py_BuildValue("(On)", step->first.get(), step->second));
        if (PyList_Append(trail.get(), pair.get()) != 0) throw PythonErrorSet{};
      }
      checked(interpreted([&] { return PyObject_CallFunctionObjArgs(name, value, trail.get(), nullptr); }));
    } catch (const PythonErrorSet&) {
      PyErr_Clear();  // the error that matters is the leaf's
    }
    PyErr_Restore(type, value, traceback);
  }

 private:
  PyRef remember(PyObject* leaf, PyRef array) {
    done_.insert(leaf, array);
    return array;
  }

  // On the way out of a failure the containers are noted, innermost first.
  PyRef convert_child(PyObject* container, Py_ssize_t position, PyObject* child) {
    try {
      return convert(child);
    } catch (...) {
      trail_.emplace_back(PyRef::borrow(container), position);
      throw;
    }
  }

  PyRef descend(PyObject* node) {
    if (Py_EnterRecursiveCall(" while converting a nest") != 0) throw PythonErrorSet{};
    struct Leave {
      ~Leave() { Py_LeaveRecursiveCall(); }
    } leave;
    if (!open_.insert(node).second) {
      throw Error(ErrorKind::layout, "a nest that contains itself", "a container is one of its own descendants",
                  "break the cycle before converting");
    }
    PyRef result = PyDict_CheckExact(node)    ? convert_dict(node)
                   : PyList_CheckExact(node)  ? convert_list(node, node)
                   : PyTuple_CheckExact(node) ? convert_tuple(node)
                                              : convert_other(node);
    open_.erase(node);
    return result;
  }

  PyRef convert_dict(PyObject* node) {
    PyRef result = checked(PyDict_Copy(node));  // keeps the order of the keys
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    for (Py_ssize_t count = 0; PyDict_Next(node, &position, &key, &value) != 0; ++count) {
      const PyRef held = PyRef::borrow(value);
      const PyRef converted = convert_child(node, count, value);
      if (PyDict_SetItem(result.get(), key, converted.get()) != 0) throw PythonErrorSet{};
    }
    return result;
  }

  PyRef convert_list(PyObject* container, PyObject* children) {
    PyRef result = checked(PyList_New(0));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(children); ++i) {
      const PyRef held = PyRef::borrow(PyList_GET_ITEM(children, i));
      const PyRef converted = convert_child(container, i, held.get());
      if (PyList_Append(result.get(), converted.get()) != 0) throw PythonErrorSet{};
    }
    return result;
  }

  PyRef convert_tuple(PyObject* node) {
    const Py_ssize_t size = PyTuple_GET_SIZE(node);
    PyRef result = checked(PyTuple_New(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyTuple_SET_ITEM(result.get(), i, convert_child(node, i, PyTuple_GET_ITEM(node, i)).release());
    }
    return result;
  }

  // Python knows the other kinds of node and of leaf: open_node(x) is None for a leaf, else (children, rebuild).
  PyRef convert_other(PyObject* node) {
    PyObject* open_node = open_node_function.get();
    const PyRef opened = checked(interpreted([&] { return PyObject_CallOneArg(open_node, node); }));
    if (opened.get() == Py_None) {
      in_leaf_ = true;
      PyRef array = leaves_.odd_leaf(node);
      in_leaf_ = false;
      return remember(node, std::move(array));
    }
    PyObject* children = PyTuple_GetItem(opened.get(), 0);
    PyObject* rebuild = PyTuple_GetItem(opened.get(), 1);
    if (children == nullptr || rebuild == nullptr || !PyList_CheckExact(children)) throw PythonErrorSet{};
    const PyRef converted = convert_list(node, children);
    leaves_.settle();
    return checked(interpreted([&] { return PyObject_CallOneArg(rebuild, converted.get()); }));
  }

  LeafConverter& leaves_;
  IdentityMap done_;
  std::unordered_set<PyObject*> open_;  // containers between the root and here
  bool in_leaf_ = false;                // a failure now is that of a leaf
  std::vector<std::pair<PyRef, Py_ssize_t>> trail_;
};

}  // namespace

bool is_container(PyObject* object) noexcept {
  return PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object);
}

PyRef convert_nest(PyObject* nest, LeafConverter& leaves) {
  Walk walk(leaves);
  try {
    PyRef converted = walk.convert(nest);
    leaves.settle();
    return converted;
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const PythonErrorSet&) {
  }
  walk.name_leaf();
  throw PythonErrorSet{};
}

}  // namespace ferry::bind
