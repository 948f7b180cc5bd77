// The parts of the module that are not hot; each register_*.cpp defines one.
#pragma once

#include <pybind11/pybind11.h>

namespace ferry::bind {

void register_errors();
void register_dtypes(pybind11::module_& module);
void register_source(pybind11::module_& module);
void register_scan(pybind11::module_& module);
void register_stack(pybind11::module_& module);
void register_plan(pybind11::module_& module);
void register_image(pybind11::module_& module);
void register_device_image(pybind11::module_& module);
void register_device(pybind11::module_& module);
void register_graph(pybind11::module_& module);
void register_kernels(pybind11::module_& module);
void register_link(pybind11::module_& module);
void register_kernel_store(pybind11::module_& module);
void register_metrics(pybind11::module_& module);
void register_replays(pybind11::module_& module);
void register_engine(pybind11::module_& module);
void register_pinned(pybind11::module_& module);
void register_pool(pybind11::module_& module);
void register_build_info(pybind11::module_& module);

}  // namespace ferry::bind
