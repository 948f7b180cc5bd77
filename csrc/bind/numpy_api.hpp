// NumPy's C API, shared by all files of bind/; numpy_api.cpp imports it once.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_24_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tensorferry_numpy_api
#ifndef FERRY_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace ferry::bind {

// False with a Python error set when NumPy cannot be imported.
bool import_numpy();

}  // namespace ferry::bind
