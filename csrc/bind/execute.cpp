#include "bind/execute.hpp"

#include <algorithm>
#include <string>

#include "bind/descr.hpp"
#include "bind/errors.hpp"
#include "bind/gil.hpp"
#include "bind/owned_array.hpp"
#include "bind/pinned_memory.hpp"
#include "bind/threads.hpp"
#include "bind/view.hpp"
#include "host/copy.hpp"
#include "host/parallel.hpp"

namespace ferry::bind {
namespace {

constexpr std::int64_t release_gil_above_nbytes = 32 * 1024;

Extents unravelled(const Extents& shape, std::int64_t flat) {
  Extents index(shape.size());
  for (int i = shape.size() - 1; i >= 0; --i) {
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

std::string index_text(const Extents& index) {
  std::string text = "(";
  for (int i = 0; i < index.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(index[i]);
  return text + (index.size() == 1 ? ",)" : ")");
}

PyArrayObject* as_array(const PyRef& ref) { return reinterpret_cast<PyArrayObject*>(ref.get()); }

// NumPy lets anybody make an array writable whose base is a writable array. So an array becomes the base in a capsule,
// unless it is a view of a tensor itself: then the tensor's is the base of both.
PyRef sealed(const PyRef& base) {
  PyObject* root = base.get();
  while (root != nullptr && PyArray_Check(root)) root = PyArray_BASE(reinterpret_cast<PyArrayObject*>(root));
  if (root == base.get()) return base;
  if (root != nullptr && is_view(root)) return PyRef::borrow(root);
  PyRef capsule = checked(PyCapsule_New(base.get(), "tensorferry.array", [](PyObject* self) {
    Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetPointer(self, "tensorferry.array")));
  }));
  Py_INCREF(base.get());  // the capsule's
  return capsule;
}

// The text of the Python error that is set, which is cleared.
std::string message_of_python_error() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const PyRef held_type = PyRef::steal(type), held_value = PyRef::steal(value),
              held_traceback = PyRef::steal(traceback);
  const PyRef text = PyRef::steal(value != nullptr ? PyObject_Str(value) : nullptr);
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return words != nullptr ? words : "no reason given";
}

PyRef new_array(const Decision& decision) {
  PyRef array = owned_array(descr_of(decision.result_dtype), decision.shape.size(), decision.shape.data(),
                            decision.strides.data());
  // NumPy forgets the strides of an array without elements; the decision's are as good, and known beforehand.
  std::copy_n(decision.strides.begin(), decision.strides.size(), PyArray_STRIDES(as_array(array)));
  return array;
}

}  // namespace

alignas(64) std::byte no_elements[64];

PyRef make_array(PyArray_Descr* descr, int ndim, const std::int64_t* shape, const std::int64_t* strides, void* data,
                 int flags) {
  Py_INCREF(descr);
  PyRef array = PyRef::steal(PyArray_NewFromDescr(&PyArray_Type, descr, ndim, shape, strides, data, flags, nullptr));
  if (array) return array;
  if (PyErr_ExceptionMatches(PyExc_ValueError) == 0) throw PythonErrorSet{};
  throw Error(ErrorKind::layout, "a tensor of " + std::to_string(ndim) + " axes",
              "NumPy cannot make such an array (" + message_of_python_error() + ")",
              "take a part of it, for example x[:1000], or reshape it to fewer axes");
}

PyRef array_over(const TensorRef& ref, DType label, bool writable, PyRef base) {
  if (ref.data == nullptr && element_count(ref.layout.shape) != 0) {
    throw Error(ErrorKind::layout, summary(ref) + " without memory", "there is nothing that an array could share",
                "materialise it first, for example x.clone()");
  }
  // Torch has no memory for empty tensors; given none, NumPy would allocate some and make it writable.
  void* data = ref.data != nullptr ? ref.data : no_elements;
  PyRef array = make_array(descr_of(label), ref.layout.ndim(), ref.layout.shape.data(), ref.layout.strides.data(), data,
                           writable ? NPY_ARRAY_WRITEABLE : 0);
  expose_lease(base.get());
  if (!writable) base = sealed(base);
  if (PyArray_SetBaseObject(as_array(array), base.release()) != 0) throw PythonErrorSet{};
  return array;
}

void copy_checked(const TensorRef& destination, const TensorRef& source, bool check_values) {
  const std::int64_t nbytes = element_count(destination.layout.shape).value_or(0) * destination.layout.itemsize;
  std::optional<Mismatch> mismatch;
  const ThreadLimit threads(threads_for(nbytes));
  {
    const GilReleased released(nbytes >= release_gil_above_nbytes);
    if (check_values) {
      mismatch = copy_same_value(destination, source);
    } else {
      copy(destination, source);
    }
  }
  if (mismatch) {
    const Extents& shape = info(source.dtype).elements_per_item > 1 ? destination.layout.shape : source.layout.shape;
    const Extents index = unravelled(shape, mismatch->index);
    throw Error(
        ErrorKind::precision_loss, summary(source) + ", casting=\"same_value\"",
        "the value at index " + index_text(index) + " is not a value of " + std::string(info(destination.dtype).name),
        "choose a wider dtype, or pass casting=\"unsafe\" to accept the change")
        .at(index);
  }
}

void warn_about_extension(DType dtype) {
  static bool warned = false;
  if (warned) return;
  warned = true;
  const PyRef errors = checked(PyImport_ImportModule("tensorferry._errors"));
  const PyRef category = checked(PyObject_GetAttrString(errors.get(), "ExtensionDTypeWarning"));
  const std::string text =
      "the result has dtype " + std::string(info(dtype).name) +
      " from ml_dtypes, whose sums and means round at every step (the mean of 1,000 ones in bfloat16 is 0.256); pass "
      "dtype=\"numpy\" for a native dtype that holds every value, or dtype=\"bits\" for the raw bits";
  if (PyErr_WarnEx(category.get(), text.c_str(), 1) != 0) throw PythonErrorSet{};
}

PyRef execute(const Source& source, const Decision& decision, PyArrayObject* destination) {
  if (decision.path != Path::copy) {
    return array_over(source.ref, decision.result_dtype, decision.writable && !source.ref.read_only, source.owner);
  }
  PyRef result = destination != nullptr ? PyRef::borrow(reinterpret_cast<PyObject*>(destination)) : new_array(decision);
  TensorRef target = *describe_array(as_array(result));
  target.dtype = decision.value_dtype;  // dtype="bits" copies values and labels the result by its bits
  target.layout.itemsize = info(decision.value_dtype).itemsize;
  copy_checked(target, source.ref, decision.checks_values);
  if (!decision.writable) PyArray_CLEARFLAGS(as_array(result), NPY_ARRAY_WRITEABLE);
  return result;
}

}  // namespace ferry::bind
