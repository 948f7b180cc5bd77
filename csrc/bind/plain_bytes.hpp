// The bytes of a tensor that can be written to a file from where they lie.
#pragma once

#include <pybind11/pybind11.h>

namespace ferry::bind {

// (bytes, dtype, shape, identity) of a plain array or host tensor that is C-contiguous, in this machine's byte order
// and of a dtype that arrays have; None for anything else, of which nothing was read or copied then. `bytes` is a flat
// read-only array over that memory, which it keeps alive; `identity` is equal for the same values in the same memory.
pybind11::object plain_bytes(const pybind11::handle& x);

}  // namespace ferry::bind
