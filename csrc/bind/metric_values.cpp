#include "bind/metric_values.hpp"

#include "bind/metric_number.hpp"

namespace ferry::bind {
namespace {

bool is_plain_number(PyObject* value) noexcept {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value) || PyBool_Check(value);
}

bool is_same_name(PyObject* key, PyObject* other) noexcept {
  return key == other ||
         (PyUnicode_CheckExact(key) && PyUnicode_CheckExact(other) && PyUnicode_Compare(key, other) == 0);
}

// A dict that nobody else holds.
PyRef take_spare(PyObject* spares, Py_ssize_t size) {
  for (Py_ssize_t i = PyList_GET_SIZE(spares) - 1; i >= 0; --i) {
    PyObject* spare = PyList_GET_ITEM(spares, i);
    if (!PyDict_CheckExact(spare) || Py_REFCNT(spare) != 1 || PyDict_GET_SIZE(spare) != size) continue;
    PyRef taken = PyRef::borrow(spare);
    if (PyList_SetSlice(spares, i, i + 1, nullptr) != 0) throw PythonErrorSet{};
    return taken;
  }
  return {};
}

bool is_our_own_float(PyObject* value) noexcept {
#ifdef Py_GIL_DISABLED
  return false;
#else
  return PyFloat_CheckExact(value) && Py_REFCNT(value) == 1;
#endif
}

void put(PyObject* record, PyObject* key, PyObject* value) {
  if (PyDict_SetItem(record, key, value) != 0) throw PythonErrorSet{};
}

void put_float(PyObject* record, PyObject* key, PyObject* known, double value) {
  if (is_our_own_float(known)) {
    reinterpret_cast<PyFloatObject*>(known)->ob_fval = value;
  } else {
    put(record, key, checked(PyFloat_FromDouble(value)).get());
  }
}

// Puts the number of `value` where `known` is now, under a key that is there already.
void put_number(PyObject* record, PyObject* key, PyObject* known, PyObject* value, PyObject* others) {
  const FastType* type = nullptr;
  if (PyUnicode_CheckExact(key)) {
    if (is_plain_number(value)) {
      if (value != known) put(record, key, value);
      return;
    }
    type = fast_type(Py_TYPE(value));
  }
  if (type != nullptr && type->is_torch) {
    if (const auto plain = plain_float_of(value, *type)) {
      put_float(record, key, known, *plain);
      return;
    }
    const PyRef held = PyRef::borrow(value);
    if (const auto scalar = scalar_of(value, *type)) {
      if (const auto floating = scalar->floating()) {
        put_float(record, key, known, *floating);
      } else {
        put(record, key, scalar->number().get());
      }
      return;
    }
  }
  if (value != known) put(record, key, value);
  if (PyList_Append(others, key) != 0) throw PythonErrorSet{};
}

// False when the names or their order are others; what was filled until then does not matter.
bool refill(PyObject* record, PyObject* metrics, PyObject* others) {
  PyObject *key = nullptr, *value = nullptr, *known_key = nullptr, *known = nullptr;
  Py_ssize_t position = 0;
  Py_ssize_t known_position = 0;
  while (PyDict_Next(metrics, &position, &key, &value) != 0) {
    if (PyDict_Next(record, &known_position, &known_key, &known) == 0 || !is_same_name(key, known_key)) return false;
    put_number(record, known_key, known, value, others);
  }
  return true;
}

}  // namespace

PyRef read_metrics(PyObject* metrics, PyObject* others, PyObject* spares) {
  if (PyRef spare = take_spare(spares, PyDict_GET_SIZE(metrics))) {
    if (refill(spare.get(), metrics, others)) return spare;
    if (PyList_SetSlice(others, 0, PyList_GET_SIZE(others), nullptr) != 0) throw PythonErrorSet{};
  }
  PyRef record = checked(PyDict_Copy(metrics));
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(record.get(), &position, &key, &value) != 0) put_number(record.get(), key, value, value, others);
  return record;
}

}  // namespace ferry::bind
