// Source: a tensor taken from any Python object, for the Python layer to complete and pass on.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/execute.hpp"
#include "bind/export.hpp"
#include "bind/names.hpp"
#include "bind/plain_bytes.hpp"
#include "bind/python_number.hpp"
#include "bind/register.hpp"
#include "bind/source.hpp"
#include "bind/tuples.hpp"
#include "bind/view.hpp"
#include "core/layout.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

PyArrayObject* require_array(const py::object& object) {
  if (!PyArray_Check(object.ptr())) throw py::type_error("expected a numpy.ndarray");
  return reinterpret_cast<PyArrayObject*>(object.ptr());
}

py::object layout_facts(const Source& source) {
  const Layout& layout = source.ref.layout;
  const ByteSpan bytes = span(layout);
  py::dict facts;
  facts["c_contiguous"] = is_c_contiguous(layout);
  facts["f_contiguous"] = is_f_contiguous(layout);
  facts["dense"] = is_dense(layout);
  const auto pitched = pitch(layout);
  facts["pitch"] = pitched ? py::object(py::make_tuple(pitched->rows, pitched->row_nbytes, pitched->step)) : py::none();
  facts["span"] = py::make_tuple(bytes.low, bytes.high);
  facts["may_overlap_itself"] = may_overlap_itself(layout);
  facts["aligned"] = is_aligned(source.ref);
  return facts;
}

}  // namespace

void register_source(py::module_& module) {
  py::class_<Source>(module, "Source", "A tensor in host memory, taken from a Python object.")
      .def_static(
          "from_array", [](const py::object& array) { return source_from_array(require_array(array)); },
          py::arg("array"))
      .def_static(
          "from_capsule", [](const py::object& capsule) { return source_from_capsule(capsule.ptr()); },
          py::arg("capsule"))
      .def_static(
          "from_exchange", [](const py::object& producer) { return source_from_exchange(producer.ptr()); },
          py::arg("producer"))
      .def_static(
          "zeros",
          [](const std::string& dtype, const std::vector<std::int64_t>& shape) {
            return source_of_zeros(named_dtype(dtype), Extents(std::span<const std::int64_t>(shape)));
          },
          py::arg("dtype"), py::arg("shape"))
      .def_static(
          "described",
          [](const std::string& dtype, const std::vector<std::int64_t>& shape,
             const std::vector<std::int64_t>& strides) {
            Source source;
            source.ref.dtype = named_dtype(dtype);
            source.ref.layout = {Extents(std::span<const std::int64_t>(shape)),
                                 Extents(std::span<const std::int64_t>(strides)), info(source.ref.dtype).itemsize};
            return source;
          },
          py::arg("dtype"), py::arg("shape"), py::arg("strides"), "Shape and dtype only: for plans, not for reading.")
      .def(
          "relabelled",
          [](const Source& self, const std::string& dtype, bool conjugated, bool negated) {
            Source source = self;
            source.ref.dtype = named_dtype(dtype);
            if (info(source.ref.dtype).itemsize != source.ref.layout.itemsize) {
              throw std::invalid_argument("relabelling keeps the item size");
            }
            source.ref.conjugated = conjugated;
            source.ref.negated = negated;
            return source;
          },
          py::arg("dtype"), py::kw_only(), py::arg("conjugated") = false, py::arg("negated") = false,
          "The same memory, read as another dtype of the same size.")
      .def(
          "owned_by",
          [](const Source& self, const py::object& owner) {
            Source source = self;
            source.owner = PyRef::borrow(owner.ptr());
            return source;
          },
          py::arg("owner"), "The same memory, kept alive by another object.")
      .def(
          "marked_read_only",
          [](const Source& self, bool read_only) {
            Source source = self;
            source.ref.read_only = self.ref.read_only || read_only;
            return source;
          },
          py::arg("read_only"), "The same memory, to be handed out read-only.")
      .def(
          "item",
          [](const Source& self, std::int64_t index) {
            const Layout& layout = self.ref.layout;
            if (layout.ndim() == 0 || index < 0 || index >= layout.shape[0]) throw py::index_error();
            Source source = self;
            source.ref.data += index * layout.strides[0];
            const auto rest = static_cast<std::size_t>(layout.ndim() - 1);
            source.ref.layout.shape = Extents(std::span<const std::int64_t>(layout.shape.data() + 1, rest));
            source.ref.layout.strides = Extents(std::span<const std::int64_t>(layout.strides.data() + 1, rest));
            return source;
          },
          py::arg("index"), "One element of the first axis, without that axis.")
      .def_property_readonly("dtype", [](const Source& self) { return std::string(info(self.ref.dtype).name); })
      .def_property_readonly("shape", [](const Source& self) { return as_tuple(self.ref.layout.shape); })
      .def_property_readonly("strides", [](const Source& self) { return as_tuple(self.ref.layout.strides); })
      .def_property_readonly("address",
                             [](const Source& self) { return reinterpret_cast<std::uintptr_t>(self.ref.data); })
      .def_property_readonly("read_only", [](const Source& self) { return self.ref.read_only; })
      .def_property_readonly("conjugated", [](const Source& self) { return self.ref.conjugated; })
      .def_property_readonly("negated", [](const Source& self) { return self.ref.negated; })
      .def_property_readonly("byte_swapped", [](const Source& self) { return self.ref.byte_swapped; })
      .def_property_readonly("no_memory", [](const Source& self) { return self.no_memory; })
      .def_property_readonly("owner",
                             [](const Source& self) { return py::reinterpret_borrow<py::object>(self.owner.get()); })
      .def("layout_facts", &layout_facts, "Contiguity, pitch, span in bytes and overlap.")
      .def("summary", [](const Source& self) { return summary(self.ref); }, "Shape and dtype, for messages.");
  module.def(
      "view_base",
      [](const py::object& storage, const py::object& origin) {
        return py::reinterpret_steal<py::object>(
            make_view(PyRef::borrow(storage.ptr()), PyRef::borrow(origin.ptr())).release());
      },
      py::arg("storage"), py::arg("origin"), "A ReadOnlyView; origin is a weak reference to a tensor, or a tensor.");
  module.def("plain_bytes", &plain_bytes, py::arg("x"),
             "(flat read-only bytes, dtype, shape, identity) of what can be written from where it lies, else None.");
  module.def("python_number", &python_number, py::arg("x"), "The number in a host tensor without axes, else None.");
  module.def("note_lazy_snapshot", &note_lazy_snapshot, "From now on tensors may have copy-on-write storage.");
  module.def(
      "copy_into",
      [](const Source& destination, const Source& source, bool check_values) {
        copy_checked(destination.ref, source.ref, check_values);
      },
      py::arg("destination"), py::arg("source"), py::kw_only(), py::arg("check_values") = false,
      "Copy and cast values; blocks until done, without the GIL.");
  module.def(
      "export_capsule",
      [](const Source& source, bool versioned, std::uint64_t flags) {
        return py::reinterpret_steal<py::object>(export_capsule(source, flags, versioned).release());
      },
      py::arg("source"), py::kw_only(), py::arg("versioned"), py::arg("flags") = 0, "A new DLPack capsule.");
}

}  // namespace ferry::bind
