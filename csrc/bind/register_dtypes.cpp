// The dtype table, the casting rules and how the module was built.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/names.hpp"
#include "bind/register.hpp"
#include "core/dtype.hpp"
#include "dlpack/abi.hpp"
#include "transfer/casting.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::boolean:
      return "bool";
    case Kind::unsigned_integer:
      return "unsigned";
    case Kind::signed_integer:
      return "signed";
    case Kind::floating:
      return "floating";
    case Kind::complex:
      return "complex";
  }
  return "";
}

py::dict describe_dtype(DType dtype) {
  const DTypeInfo& d = info(dtype);
  py::dict entry;
  entry["name"] = std::string(d.name);
  entry["kind"] = kind_name(d.kind);
  entry["value_bits"] = d.value_bits;
  entry["itemsize"] = d.itemsize;
  entry["elements_per_item"] = d.elements_per_item;
  entry["numpy_native"] = d.numpy_native;
  entry["array"] = std::string(info(array_dtype(dtype)).name);
  entry["native"] = std::string(info(native_dtype(dtype)).name);
  const auto bits = bits_dtype(dtype);
  entry["bits"] = bits ? py::object(py::str(std::string(info(*bits).name))) : py::none();
  return entry;
}

}  // namespace

void register_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      set_python_error(error);
    } catch (const PythonErrorSet&) {
    }
  });
}

void register_dtypes(py::module_& module) {
  module.def(
      "dtype_table",
      [] {
        py::list table;
        for (std::size_t i = 0; i < dtype_count; ++i) table.append(describe_dtype(static_cast<DType>(i)));
        return table;
      },
      "One dict for each dtype: name, kind, value_bits, itemsize, elements_per_item, numpy_native, array, native, "
      "bits.");
  module.def(
      "can_cast",
      [](const std::string& from, const std::string& to, const std::string& casting) {
        return can_cast(named_dtype(from), named_dtype(to), casting_names.value(casting));
      },
      py::arg("from_"), py::arg("to"), py::arg("casting"), "NumPy's can_cast, for every dtype of the table.");
}

void register_build_info(py::module_& module) {
  module.def(
      "build_info",
      [] {
        py::dict facts;
        facts["compiler"] = std::string(__VERSION__);
        facts["dlpack"] = std::to_string(DLPACK_MAJOR_VERSION) + "." + std::to_string(DLPACK_MINOR_VERSION);
        facts["numpy"] = TENSORFERRY_NUMPY_VERSION;
        facts["build_type"] = TENSORFERRY_BUILD_TYPE;
        facts["sanitizers"] = TENSORFERRY_SANITIZERS;
        return facts;
      },
      "How the module was built.");
  module.def("exchange_api_enabled", &exchange_api_enabled,
             "False when TENSORFERRY_NO_EXCHANGE_API was set at the first conversion.");
  module.def(
      "reads_through_exchange_table",
      [](const py::type& type) { return fast_type(reinterpret_cast<PyTypeObject*>(type.ptr())) != nullptr; },
      py::arg("type"), "Are instances of exactly this type read through their DLPack exchange table?");
}

}  // namespace ferry::bind
