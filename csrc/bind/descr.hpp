// NumPy's dtype objects for our dtypes and back; the ml_dtypes package is imported when its first type is needed.
#pragma once

#include <optional>

#include "bind/numpy_api.hpp"
#include "core/dtype.hpp"

namespace ferry::bind {

// Borrowed. Throws PythonErrorSet when ml_dtypes is missing or too old for the type.
PyArray_Descr* descr_of(DType dtype);

// None for dtypes we have no name for (longdouble, strings, records, dates, objects). Byte order is not looked at.
std::optional<DType> dtype_of(PyArray_Descr* descr);

}  // namespace ferry::bind
