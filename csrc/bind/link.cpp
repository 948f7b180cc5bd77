#include "bind/link.hpp"

#include "bind/gil.hpp"
#include "bind/python_function.hpp"

namespace ferry::bind {
namespace {

constinit PythonFunction python_source("tensorferry._device.link", "stored_figures");

// Null where an error is set.
PyRef ask(int device) {
  const PyRef number = PyRef::steal(PyLong_FromLong(device));
  if (!number) return {};
  try {
    PyObject* function = python_source.get();
    return PyRef::steal(interpreted([&] { return PyObject_CallOneArg(function, number.get()); }));
  } catch (const PythonErrorSet&) {
    return {};
  }
}

}  // namespace

std::optional<LinkFigures> stored_figures(int device) {
  std::optional<LinkFigures> found;
  with_gil([&] {
    const PyRef answer = ask(device);
    if (!answer) {
      PyErr_WriteUnraisable(nullptr);  // copies go on with other figures
      return;
    }
    if (answer.get() == Py_None) return;
    LinkFigures figures;
    long long when_waiting = 0;
    long long when_not = 0;
    long long of_blocks = 0;
    long long rows = 0;
    long long gathers = 0;
    if (!PyTuple_Check(answer.get()) || !PyArg_ParseTuple(answer.get(), "dLLLLL", &figures.nbytes_per_s, &when_waiting,
                                                          &when_not, &of_blocks, &rows, &gathers)) {
      PyErr_WriteUnraisable(nullptr);
      return;
    }
    figures.from = FiguresFrom::calibrated;
    figures.stores_when_waiting = when_waiting;
    figures.stores_when_not = when_not;
    figures.stores_of_blocks = of_blocks;
    figures.rows_from = rows;
    figures.gathers_below = gathers;
    found = figures;
  });
  return found;
}

}  // namespace ferry::bind
