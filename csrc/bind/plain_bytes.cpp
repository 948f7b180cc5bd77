#include "bind/plain_bytes.hpp"

#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/execute.hpp"
#include "bind/torch_source.hpp"
#include "bind/tuples.hpp"

namespace py = pybind11;

namespace ferry::bind {
namespace {

bool lies_as_written(const Source& source) {
  const TensorRef& ref = source.ref;
  const bool marked = ref.byte_swapped || ref.conjugated || ref.negated;
  return !source.no_memory && !marked && array_dtype(ref.dtype) == ref.dtype && is_c_contiguous(ref.layout);
}

PyRef flat_bytes(const Source& source, std::int64_t nbytes) {
  void* data = nbytes > 0 ? source.ref.data : no_elements;
  PyRef bytes = make_array(descr_of(DType::uint8), 1, &nbytes, nullptr, data, 0);
  auto* array = reinterpret_cast<PyArrayObject*>(bytes.get());
  if (PyArray_SetBaseObject(array, PyRef(source.owner).release()) != 0) throw PythonErrorSet{};
  return bytes;
}

}  // namespace

py::object plain_bytes(const py::handle& x) {
  const FastType* type = fast_type(Py_TYPE(x.ptr()));
  if (type != nullptr && type->is_torch && torch_is_copy_on_write(x.ptr())) return py::none();
  const auto source = plain_source(x.ptr());
  if (!source || !lies_as_written(*source)) return py::none();
  const TensorRef& ref = source->ref;
  const auto count = element_count(ref.layout.shape);
  if (!count) return py::none();
  const auto bytes = py::reinterpret_steal<py::object>(flat_bytes(*source, *count * ref.layout.itemsize).release());
  const auto dtype = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(descr_of(ref.dtype)));
  const py::tuple shape = as_tuple(ref.layout.shape);
  const auto address = reinterpret_cast<std::uintptr_t>(ref.data);
  const auto identity = py::make_tuple("cpu", address, shape, as_tuple(ref.layout.strides), info(ref.dtype).name, false,
                                       false, false, dtype);
  return py::make_tuple(bytes, dtype, shape, identity);
}

}  // namespace ferry::bind
