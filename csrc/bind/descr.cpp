#include "bind/descr.hpp"

#include <array>
#include <string>

#include "bind/errors.hpp"
#include "bind/py_ref.hpp"

namespace ferry::bind {
namespace {

std::array<PyArray_Descr*, dtype_count> descriptors{};  // owned for the life of the process

int builtin_type_number(DType dtype) noexcept {
  switch (dtype) {
    case DType::bool_:
      return NPY_BOOL;
    case DType::uint8:
      return NPY_UINT8;
    case DType::uint16:
      return NPY_UINT16;
    case DType::uint32:
      return NPY_UINT32;
    case DType::uint64:
      return NPY_UINT64;
    case DType::int8:
      return NPY_INT8;
    case DType::int16:
      return NPY_INT16;
    case DType::int32:
      return NPY_INT32;
    case DType::int64:
      return NPY_INT64;
    case DType::float16:
      return NPY_FLOAT16;
    case DType::float32:
      return NPY_FLOAT32;
    case DType::float64:
      return NPY_FLOAT64;
    case DType::complex64:
      return NPY_COMPLEX64;
    case DType::complex128:
      return NPY_COMPLEX128;
    default:
      return -1;
  }
}

std::optional<DType> builtin_dtype(int type_number) noexcept {
  switch (type_number) {
    case NPY_BOOL:
      return DType::bool_;
    case NPY_HALF:
      return DType::float16;
    case NPY_FLOAT:
      return DType::float32;
    case NPY_DOUBLE:
      return DType::float64;
    case NPY_CFLOAT:
      return DType::complex64;
    case NPY_CDOUBLE:
      return DType::complex128;
    // C's names for integers: several of them have the same size.
    case NPY_BYTE:
      return DType::int8;
    case NPY_UBYTE:
      return DType::uint8;
    case NPY_SHORT:
      return DType::int16;
    case NPY_USHORT:
      return DType::uint16;
    case NPY_INT:
      return DType::int32;
    case NPY_UINT:
      return DType::uint32;
    case NPY_LONG:
      return sizeof(long) == 8 ? DType::int64 : DType::int32;
    case NPY_ULONG:
      return sizeof(long) == 8 ? DType::uint64 : DType::uint32;
    case NPY_LONGLONG:
      return DType::int64;
    case NPY_ULONGLONG:
      return DType::uint64;
    default:
      return std::nullopt;
  }
}

PyArray_Descr* load_extension(DType dtype) {
  const std::string name(info(dtype).name);
  const PyRef module = checked(PyImport_ImportModule("ml_dtypes"));
  const PyRef type = PyRef::steal(PyObject_GetAttrString(module.get(), name.c_str()));
  if (!type) {
    PyErr_Clear();
    throw Error(ErrorKind::dtype, "an array of dtype " + name, "the installed ml_dtypes does not know this dtype",
                "upgrade it (pip install -U ml_dtypes), or pass dtype=\"numpy\" or dtype=\"bits\"");
  }
  PyArray_Descr* descr = nullptr;
  if (PyArray_DescrConverter(type.get(), &descr) == NPY_FAIL) throw PythonErrorSet{};
  return descr;
}

}  // namespace

PyArray_Descr* descr_of(DType dtype) {
  PyArray_Descr*& descr = descriptors[static_cast<std::size_t>(dtype)];
  if (descr == nullptr) {
    const int number = builtin_type_number(dtype);
    descr = number >= 0 ? PyArray_DescrFromType(number) : load_extension(dtype);
    if (descr == nullptr) throw PythonErrorSet{};
  }
  return descr;
}

std::optional<DType> dtype_of(PyArray_Descr* descr) {
  if (descr->type_num < NPY_USERDEF) return builtin_dtype(descr->type_num);
  // A user-defined type is ml_dtypes' when its scalar class says so; each name there is a name of ours.
  const PyRef module_name =
      PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(descr->typeobj), "__module__"));
  const PyRef name = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(descr->typeobj), "__name__"));
  if (!module_name || !name || !PyUnicode_Check(module_name.get()) || !PyUnicode_Check(name.get())) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (PyUnicode_CompareWithASCIIString(module_name.get(), "ml_dtypes") != 0) return std::nullopt;
  const char* text = PyUnicode_AsUTF8(name.get());
  if (text == nullptr) throw PythonErrorSet{};
  return dtype_from_name(text);
}

}  // namespace ferry::bind
