// What the engine can do on this machine: for the doctor and the benchmarks.
#include <pybind11/numpy.h>

#include <string>

#include "bind/gil.hpp"
#include "bind/register.hpp"
#include "bind/threads.hpp"
#include "host/carry.hpp"
#include "host/kernels/kernels.hpp"
#include "host/openmp_team.hpp"
#include "host/raw_copy.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

using Bytes = py::array_t<std::uint8_t, py::array::c_style>;

void raw_copy_arrays(Bytes destination, const Bytes& source, bool non_temporal, int threads) {
  if (destination.nbytes() != source.nbytes()) throw py::value_error("the two arrays differ in size");
  auto* to = reinterpret_cast<std::byte*>(destination.mutable_data());
  const auto* from = reinterpret_cast<const std::byte*>(source.data());
  const GilReleased released(true);
  raw_copy(to, from, source.nbytes(), non_temporal, threads);
}

}  // namespace

void register_engine(py::module_& module) {
  module.def("raw_copy", &raw_copy_arrays, py::arg("destination").noconvert(), py::arg("source").noconvert(),
             py::arg("non_temporal"), py::arg("threads"),
             "Copy between two contiguous uint8 arrays of equal size; blocks until done, without the GIL.");
  module.def("processor_level", [] { return std::string(kernels().level); }, "Which kernels this processor gets.");
  module.def("threads_for", &threads_for, py::arg("nbytes"), "How many threads a copy of so many bytes may use.");
  module.def("works_with_openmp_team", &has_openmp_team,
             "Are the threads those of torch's OpenMP runtime? So from the first large copy after torch's import on.");
  module.def("stream_threshold_nbytes", &stream_threshold_nbytes, "From which size on copies write past the caches.");
}

}  // namespace ferry::bind
