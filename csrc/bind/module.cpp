// The extension module: its parts register themselves.
#include <pybind11/pybind11.h>

#include <array>

#include "bind/from_numpy.hpp"
#include "bind/numpy_api.hpp"
#include "bind/register.hpp"
#include "bind/to_numpy.hpp"
#include "bind/view.hpp"

namespace {

template <class Function>
PyCFunction as_c_function(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

std::array<PyMethodDef, 3> fast_functions{{
    {"to_numpy", as_c_function(&ferry::bind::to_numpy), METH_FASTCALL | METH_KEYWORDS, ferry::bind::to_numpy_doc},
    {"from_numpy", as_c_function(&ferry::bind::from_numpy), METH_FASTCALL | METH_KEYWORDS, ferry::bind::from_numpy_doc},
    {nullptr, nullptr, 0, nullptr},
}};

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The native part of tensorferry.";
  if (!ferry::bind::import_numpy() || !ferry::bind::add_view_type(module.ptr()) ||
      PyModule_AddFunctions(module.ptr(), fast_functions.data()) != 0) {
    throw pybind11::error_already_set();
  }
  ferry::bind::register_errors();
  ferry::bind::register_dtypes(module);
  ferry::bind::register_source(module);
  ferry::bind::register_scan(module);
  ferry::bind::register_stack(module);
  ferry::bind::register_plan(module);
  ferry::bind::register_device(module);
  ferry::bind::register_graph(module);
  ferry::bind::register_kernels(module);
  ferry::bind::register_kernel_store(module);
  ferry::bind::register_link(module);
  ferry::bind::register_metrics(module);
  ferry::bind::register_replays(module);
  ferry::bind::register_engine(module);
  ferry::bind::register_image(module);
  ferry::bind::register_device_image(module);
  ferry::bind::register_pinned(module);
  ferry::bind::register_pool(module);
  ferry::bind::register_build_info(module);
}
