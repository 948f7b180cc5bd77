// Carries out a decision: makes the array, shares or copies.
#pragma once

#include <cstddef>

#include "bind/source.hpp"
#include "transfer/plan.hpp"

namespace ferry::bind {

// A new ndarray as `decision` says; `destination` (or nullptr) is the array to fill and is returned itself.
PyRef execute(const Source& source, const Decision& decision, PyArrayObject* destination = nullptr);

// What an array without elements points to.
extern std::byte no_elements[64];

// A bare array: over `data`, or with memory of its own when that is nullptr. What NumPy cannot count is an Error.
PyRef make_array(PyArray_Descr* descr, int ndim, const std::int64_t* shape, const std::int64_t* strides, void* data,
                 int flags);

// An array over existing memory, read-only unless `writable`; `base` keeps the memory alive.
PyRef array_over(const TensorRef& ref, DType label, bool writable, PyRef base);

// Copies with the GIL released when there is much to do. Throws Error(precision_loss) naming the first index.
void copy_checked(const TensorRef& destination, const TensorRef& source, bool check_values);

// Warns once per process that ml_dtypes arithmetic surprises.
void warn_about_extension(DType dtype);

}  // namespace ferry::bind
