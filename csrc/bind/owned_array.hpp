// New arrays whose memory comes from us: aligned to 64 bytes, and from a size on from the pool of warm blocks.
#pragma once

#include <cstdint>

#include "bind/numpy_api.hpp"
#include "bind/py_ref.hpp"

namespace ferry::bind {

// An uninitialised, writable array that owns its memory, as NumPy's own arrays do; the strides must be those of one
// block without holes. `descr` is borrowed.
PyRef owned_array(PyArray_Descr* descr, int ndim, const std::int64_t* shape, const std::int64_t* strides);

}  // namespace ferry::bind
