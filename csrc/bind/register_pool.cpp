// The pool of host memory, and new arrays from it.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bind/descr.hpp"
#include "bind/gil.hpp"
#include "bind/names.hpp"
#include "bind/owned_array.hpp"
#include "bind/register.hpp"
#include "bind/source.hpp"
#include "core/layout.hpp"
#include "host/pool/host_pool.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

py::dict described(const PoolStats& stats) {
  py::dict figures;
  figures["in_use_nbytes"] = stats.in_use_nbytes;
  figures["in_use_blocks"] = stats.in_use_blocks;
  figures["idle_nbytes"] = stats.idle_nbytes;
  figures["idle_blocks"] = stats.idle_blocks;
  figures["limit_nbytes"] = stats.limit_nbytes;
  figures["high_water_nbytes"] = stats.high_water_nbytes;
  figures["hits"] = stats.hits;
  figures["misses"] = stats.misses;
  figures["trims"] = stats.trims;
  return figures;
}

}  // namespace

void register_pool(py::module_& module) {
  Pool& pool = host_pool();  // made now: a fork must not find another thread in the middle of making it
  module.def("pool_stats", [&pool] { return described(pool.stats()); }, "The figures of the host pool.");
  module.def(
      "trim_pool",
      [&pool](std::size_t keep_nbytes) {
        const GilReleased released(true);
        return pool.trim(keep_nbytes);
      },
      py::arg("keep_nbytes"), "Give idle memory back to the system; returns how many bytes.");
  module.def(
      "set_pool_limit",
      [&pool](std::size_t limit_nbytes) {
        const GilReleased released(true);
        return pool.set_limit(limit_nbytes);
      },
      py::arg("limit_nbytes"), "Change what may be idle at most; returns what held before.");
  module.def(
      "empty_array",
      [](const std::string& dtype, const std::vector<std::int64_t>& shape) {
        const DType label = named_dtype(dtype);
        const Extents extents{std::span<const std::int64_t>(shape)};
        const Extents strides = contiguous_strides(extents, info(label).itemsize, Order::c);
        return py::reinterpret_steal<py::object>(
            owned_array(descr_of(label), extents.size(), extents.data(), strides.data()).release());
      },
      py::arg("dtype"), py::arg("shape"), "An uninitialised array in C order, with memory as copies get it.");
}

}  // namespace ferry::bind
