// Many tensors taken at once, to become one.
#include <pybind11/pybind11.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bind/errors.hpp"
#include "bind/exchange.hpp"
#include "bind/gil.hpp"
#include "bind/register.hpp"
#include "bind/threads.hpp"
#include "bind/torch_source.hpp"
#include "bind/tuples.hpp"
#include "host/logical_shape.hpp"
#include "host/parallel.hpp"
#include "host/stack.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

constexpr std::int64_t release_gil_above_nbytes = 32 * 1024;

// Sources side by side, so that the engine can be handed all of them.
class Batch {
 public:
  void reserve(std::size_t count) {
    refs_.reserve(count);
    owners_.reserve(count);
  }
  void add(Source&& source) {
    refs_.push_back(source.ref);
    owners_.push_back(std::move(source.owner));
  }

  [[nodiscard]] std::size_t size() const noexcept { return refs_.size(); }
  [[nodiscard]] std::span<const TensorRef> refs() const noexcept { return refs_; }
  [[nodiscard]] Source at(std::size_t i) const {
    if (i >= size()) throw py::index_error();
    Source source;
    source.ref = refs_[i];
    source.owner = owners_[i];
    return source;
  }

 private:
  std::vector<TensorRef> refs_;
  std::vector<PyRef> owners_;
};

// Nothing for an item that Python has to look at.
std::optional<Source> taken_here(PyObject* item, bool refuses_grad) {
  if (refuses_grad && !PyArray_CheckExact(item)) {
    const FastType* type = fast_type(Py_TYPE(item));
    if (type == nullptr || !type->is_torch || torch_requires_grad(item)) return std::nullopt;
  }
  return plain_source(item);
}

Batch batch_of(const py::sequence& items, const py::function& take, bool refuses_grad) {
  const PyRef list = checked(PySequence_Fast(items.ptr(), "expected a sequence"));
  Batch batch;
  batch.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(list.get())));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {  // `take` may change the list
    const PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(list.get(), i));
    if (auto source = taken_here(item.get(), refuses_grad)) {
      batch.add(std::move(*source));
    } else {
      batch.add(Source(take(i, py::handle(item.get())).cast<const Source&>()));
    }
  }
  return batch;
}

py::object first_of_other_shape(const Batch& batch) {
  const std::span<const TensorRef> refs = batch.refs();
  const Extents wanted = logical_shape(refs[0]);
  for (std::size_t i = 1; i < refs.size(); ++i) {
    if (!(logical_shape(refs[i]) == wanted)) return py::int_(i);
  }
  return py::none();
}

py::dict first_of_each_dtype(const Batch& batch) {
  py::dict first;
  std::optional<DType> known;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const DType dtype = batch.refs()[i].dtype;
    if (dtype == known) continue;
    known = dtype;
    const py::str name{std::string(info(dtype).name)};
    if (!first.contains(name)) first[name] = i;
  }
  return first;
}

// Those of which a byte may lie among the destination's, from its first to its last.
py::list near(const Batch& batch, const Source& destination) {
  const auto bytes = [](const TensorRef& ref) {
    const ByteSpan touched = span(ref.layout);
    const auto start = reinterpret_cast<std::uintptr_t>(ref.data);
    return std::pair(start + static_cast<std::uintptr_t>(touched.low),
                     start + static_cast<std::uintptr_t>(touched.high));
  };
  const auto [low, high] = bytes(destination.ref);
  py::list found;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto [first, last] = bytes(batch.refs()[i]);
    if (first < high && low < last) found.append(i);
  }
  return found;
}

void fill(const Batch& batch, const Source& destination) {
  const Layout& layout = destination.ref.layout;
  const std::int64_t nbytes = element_count(layout.shape).value_or(0) * layout.itemsize;
  const ThreadLimit threads(threads_for(nbytes));
  const GilReleased released(nbytes >= release_gil_above_nbytes);
  copy_each(destination.ref, batch.refs());
}

}  // namespace

void register_stack(py::module_& module) {
  py::class_<Batch>(module, "Batch", "Tensors taken from the items of a sequence, at least one.")
      .def("__len__", &Batch::size)
      .def("__getitem__", &Batch::at, py::arg("index"))
      .def_property_readonly("shape", [](const Batch& self) { return as_tuple(logical_shape(self.refs()[0])); })
      .def("first_of_other_shape", &first_of_other_shape,
           "Position of the first whose shape is not that of the first one.")
      .def("first_of_each_dtype", &first_of_each_dtype, "Each dtype with the position where it comes first.")
      .def("near", &near, py::arg("destination"), "Positions of those that may overlap the destination.")
      .def("fill", &fill, py::arg("destination"),
           "Copy and cast each to its place in the destination; blocks until done, without the GIL.");
  module.def("batch", &batch_of, py::arg("items"), py::arg("take"), py::arg("refuses_grad"),
             "Take plain arrays and host tensors, and others as take(position, item) does.");
}

}  // namespace ferry::bind
