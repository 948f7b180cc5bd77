#define FERRY_IMPORTS_NUMPY
#include "bind/numpy_api.hpp"

namespace ferry::bind {

bool import_numpy() { return PyArray_ImportNumPyAPI() == 0; }

}  // namespace ferry::bind
