// Extents as a Python tuple.
#pragma once

#include <pybind11/pybind11.h>

#include "core/extents.hpp"

namespace ferry::bind {

inline pybind11::tuple as_tuple(const Extents& extents) {
  pybind11::tuple result(static_cast<std::size_t>(extents.size()));
  for (int i = 0; i < extents.size(); ++i) result[static_cast<std::size_t>(i)] = extents[i];
  return result;
}

}  // namespace ferry::bind
