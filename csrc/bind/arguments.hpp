// What the arguments that many functions share mean.
#pragma once

#include <optional>

#include "bind/py_ref.hpp"
#include "transfer/plan.hpp"

namespace ferry::bind {

struct DTypeArgument {
  DTypeChoice choice = DTypeChoice::keep;
  DType dtype = DType::uint8;  // for DTypeChoice::named
};

// Nothing for what Python refuses, or has to look at leaf by leaf (a mapping). Python is asked once for each argument.
[[nodiscard]] std::optional<DTypeArgument> dtype_argument(PyObject* argument);

// Nothing for what is no casting rule.
[[nodiscard]] std::optional<Casting> casting_argument(PyObject* argument);

[[nodiscard]] bool equals(PyObject* text, const char* expected);

}  // namespace ferry::bind
