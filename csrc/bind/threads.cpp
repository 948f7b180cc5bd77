#include "bind/threads.hpp"

#include <algorithm>
#include <thread>

#include "bind/py_ref.hpp"

namespace ferry::bind {
namespace {

constexpr std::int64_t asking_pays_nbytes = 256 * 1024;

int processors() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

// torch.get_num_threads, once torch has been imported; kept for ever.
PyObject* get_num_threads() {
  static PyObject* function = nullptr;
  if (function != nullptr) return function;
  const PyRef name = checked(PyUnicode_InternFromString("torch"));
  const PyRef torch = PyRef::steal(PyImport_GetModule(name.get()));
  if (torch) function = PyObject_GetAttrString(torch.get(), "get_num_threads");
  PyErr_Clear();  // a module of that name that is not torch, or not yet whole
  return function;
}

}  // namespace

int threads_for(std::int64_t nbytes) {
  if (nbytes < asking_pays_nbytes) return 1;
  PyObject* function = get_num_threads();
  if (function == nullptr) return processors();
  const PyRef count = checked(PyObject_CallNoArgs(function));
  const long threads = PyLong_AsLong(count.get());
  if (threads == -1 && PyErr_Occurred() != nullptr) throw PythonErrorSet{};
  return static_cast<int>(std::clamp(threads, 1L, 1024L));
}

}  // namespace ferry::bind
