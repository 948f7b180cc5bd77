#include "bind/threads.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>

#include "bind/gil.hpp"
#include "bind/py_ref.hpp"
#include "host/openmp_team.hpp"

namespace ferry::bind {
namespace {

constexpr std::int64_t asking_pays_nbytes = 256 * 1024;

int processors() {
  static const int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return count;
}

// The OpenMP runtime that torch brings stands in its own directory, or beside it.
void join_team_of(PyObject* torch) {
  const PyRef file = PyRef::steal(PyObject_GetAttrString(torch, "__file__"));
  const char* path = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
  if (path == nullptr) return;
  const std::string package = std::string(path, std::string_view(path).rfind('/'));  // .../site-packages/torch
  join_openmp_team(package);
}

// torch.get_num_threads, once torch has been imported; kept for ever.
PyObject* get_num_threads() {
  static PyObject* function = nullptr;
  if (function != nullptr) return function;
  const PyRef name = checked(PyUnicode_InternFromString("torch"));
  const PyRef torch = PyRef::steal(PyImport_GetModule(name.get()));
  if (torch) function = PyObject_GetAttrString(torch.get(), "get_num_threads");
  if (function != nullptr) join_team_of(torch.get());
  PyErr_Clear();  // a module of that name that is not torch, or not yet whole
  return function;
}

}  // namespace

int threads_for(std::int64_t nbytes) {
  if (nbytes < asking_pays_nbytes) return 1;
  PyObject* function = get_num_threads();
  if (function == nullptr) return processors();
  const PyRef count = checked(interpreted([&] { return PyObject_CallNoArgs(function); }));
  const long threads = PyLong_AsLong(count.get());
  if (threads == -1 && PyErr_Occurred() != nullptr) throw PythonErrorSet{};
  return static_cast<int>(std::clamp(threads, 1L, 1024L));
}

}  // namespace ferry::bind
