#include "bind/arguments.hpp"

#include <string_view>

#include "bind/gil.hpp"
#include "bind/names.hpp"
#include "bind/numpy_api.hpp"
#include "bind/python_function.hpp"
#include "core/dtype.hpp"

namespace ferry::bind {
namespace {

constexpr long named_from = 16;  // codes below are choices, codes from here on dtypes

// Names and dtypes are immutable; a torch dtype tells its type by its name.
bool may_be_remembered(PyObject* argument) {
  return PyUnicode_CheckExact(argument) || PyArray_DescrCheck(argument) || PyType_Check(argument) ||
         std::string_view(Py_TYPE(argument)->tp_name) == "torch.dtype";
}

std::optional<long> code_of(std::string_view word) {
  if (word == "keep") return static_cast<long>(DTypeChoice::keep);
  if (word == "numpy") return static_cast<long>(DTypeChoice::native);
  if (word == "bits") return static_cast<long>(DTypeChoice::bits);
  const auto dtype = dtype_from_name(word);
  return dtype ? std::optional<long>(named_from + static_cast<long>(*dtype)) : std::nullopt;
}

// The code of what Python makes of the argument; none when it refuses.
std::optional<long> asked(PyObject* argument) {
  static constinit PythonFunction resolve("tensorferry._dtypes", "resolve");
  const PyRef word = PyRef::steal(interpreted([&] { return PyObject_CallOneArg(resolve.get(), argument); }));
  const char* text = word ? PyUnicode_AsUTF8(word.get()) : nullptr;
  PyErr_Clear();  // the general path raises it again, with the other arguments checked in their order
  return text != nullptr ? code_of(text) : std::nullopt;
}

}  // namespace

bool equals(PyObject* text, const char* expected) {
  return PyUnicode_Check(text) && PyUnicode_CompareWithASCIIString(text, expected) == 0;
}

std::optional<Casting> casting_argument(PyObject* argument) {
  for (const auto& [word, casting] : casting_names.pairs) {
    if (equals(argument, word.data())) return casting;
  }
  return std::nullopt;
}

std::optional<DTypeArgument> dtype_argument(PyObject* argument) {
  if (argument == Py_None) return DTypeArgument{};
  if (!may_be_remembered(argument)) return std::nullopt;
  static PyObject* const remembered = checked(PyDict_New()).release();
  long code = -1;
  if (PyObject* known = PyDict_GetItemWithError(remembered, argument)) {
    code = PyLong_AsLong(known);
  } else {
    if (PyErr_Occurred() != nullptr) throw PythonErrorSet{};
    const auto found = asked(argument);
    if (!found) return std::nullopt;
    code = *found;
    const PyRef number = checked(PyLong_FromLong(code));
    if (PyDict_SetItem(remembered, argument, number.get()) != 0) throw PythonErrorSet{};
  }
  if (code < named_from) return DTypeArgument{static_cast<DTypeChoice>(code), DType::uint8};
  return DTypeArgument{DTypeChoice::named, static_cast<DType>(code - named_from)};
}

}  // namespace ferry::bind
