// The Python number that a host tensor without axes holds.
#pragma once

#include <pybind11/pybind11.h>

namespace ferry::bind {

// A bool, int, float or complex; None for tensors with axes or elsewhere, for dtypes that Python's numbers do not hold
// exactly or that take Python to read, and for anything else.
pybind11::object python_number(const pybind11::handle& x);

}  // namespace ferry::bind
