#include "bind/to_numpy.hpp"

#include <array>
#include <string>

#include "bind/arguments.hpp"
#include "bind/device_leaf.hpp"
#include "bind/errors.hpp"
#include "bind/gil.hpp"
#include "bind/keywords.hpp"
#include "bind/nest.hpp"
#include "bind/numpy_api.hpp"
#include "bind/python_function.hpp"

namespace ferry::bind {
namespace {

KeywordParser<7> keywords{{"copy", "dtype", "casting", "order", "out", "stream", "pinned"}};

// Fills `request` for what the hot path can do alone; everything else, mistakes included, is Python's.
void interpret(ToNumpyArguments& arguments) {
  Request& request = arguments.request;
  const bool out_is_plain = arguments.out == Py_None || PyArray_CheckExact(arguments.out);
  bool understood = out_is_plain && arguments.stream == Py_None && arguments.pinned == nullptr;
  if (arguments.copy == Py_True) {
    request.copy = CopyPolicy::always;
  } else if (arguments.copy == Py_False) {
    request.copy = CopyPolicy::never;
  } else if (arguments.copy != Py_None) {
    understood = false;
  }
  if (arguments.order != nullptr) {
    if (equals(arguments.order, "C")) {
      request.order = Order::c;
    } else if (equals(arguments.order, "F")) {
      request.order = Order::fortran;
    } else if (equals(arguments.order, "A")) {
      request.order = Order::any;
    } else if (!equals(arguments.order, "K")) {
      understood = false;
    }
  }
  if (arguments.casting != nullptr) {
    const auto casting = casting_argument(arguments.casting);
    understood = understood && casting;
    request.casting = casting.value_or(request.casting);
  }
  if (understood && arguments.dtype != Py_None) {
    const auto dtype = dtype_argument(arguments.dtype);
    understood = dtype.has_value();
    request.dtype_choice = dtype.value_or(DTypeArgument{}).choice;
    request.dtype = dtype.value_or(DTypeArgument{}).dtype;
    // Arrays hold one value a byte.
    if (request.dtype == DType::float4_e2m1fn_x2) request.dtype = DType::float4_e2m1fn;
  }
  arguments.leaf_only = arguments.out != Py_None || arguments.casting != nullptr || arguments.dtype != Py_None;
  arguments.is_simple = understood;
}

PyObject* convert_in_python(PyObject* x, const ToNumpyArguments& arguments) {
  static constinit PythonFunction convert("tensorferry._convert.to_numpy", "convert");
  const PyRef casting = arguments.casting != nullptr ? PyRef::borrow(arguments.casting)
                                                     : checked(PyUnicode_InternFromString("same_kind"));
  const PyRef order =
      arguments.order != nullptr ? PyRef::borrow(arguments.order) : checked(PyUnicode_InternFromString("K"));
  const PyRef pinned =
      arguments.pinned != nullptr ? PyRef::borrow(arguments.pinned) : checked(PyUnicode_InternFromString("auto"));
  const std::array<PyObject*, 8> call{x,           arguments.copy, arguments.dtype,  casting.get(),
                                      order.get(), arguments.out,  arguments.stream, pinned.get()};
  PyObject* function = convert.get();
  return interpreted([&] { return PyObject_Vectorcall(function, call.data(), call.size(), nullptr); });
}

// The nest is converted in Python then, where all copies from devices are enqueued before the one wait for them.
struct LeafOnDevice {};

// Nothing unless it is plainly a tensor on a CUDA device that is wanted as it is.
PyRef device_leaf(PyObject* leaf, const ToNumpyArguments& arguments, DeviceLeaves& on_device) {
  if (arguments.leaf_only) return {};
  const FastType* type = fast_type(Py_TYPE(leaf));
  return type != nullptr && type->is_torch ? on_device.add(leaf, *type, arguments.request) : PyRef();
}

class ArrayLeaves final : public LeafConverter {
 public:
  ArrayLeaves(PyObject* nest, const ToNumpyArguments& arguments) : arguments_(arguments), on_device_(nest) {}

  PyRef plain_leaf(PyObject* leaf) override {
    if (PyRef array = leaf_to_numpy(leaf, arguments_)) return array;
    return device_leaf(leaf, arguments_, on_device_);
  }

  void settle() override { on_device_.settle(); }

  PyRef odd_leaf(PyObject* leaf) override {
    static constinit PythonFunction convert("tensorferry._convert.to_numpy", "convert_leaf");
    const Request& request = arguments_.request;
    PyObject* copy = request.copy == CopyPolicy::always  ? Py_True
                     : request.copy == CopyPolicy::never ? Py_False
                                                         : Py_None;
    const char order[2] = {"KCFA"[static_cast<int>(request.order)], '\0'};
    PyRef array = checked(interpreted([&] { return PyObject_CallFunction(convert.get(), "OOs", leaf, copy, order); }));
    if (array.get() == Py_NotImplemented) throw LeafOnDevice{};
    return array;
  }

 private:
  const ToNumpyArguments& arguments_;
  DeviceLeaves on_device_;
};

}  // namespace

const char to_numpy_doc[] =
    R"doc(to_numpy($module, x, /, *, copy=None, dtype=None, casting='same_kind', order='K', out=None, stream=None, pinned='auto')
--

Convert a tensor, or a nest of tensors, to NumPy, sharing memory when that is safe.

Parameters
----------
x : tensor, array, DLPack producer, buffer or nest
    Of any dtype and layout. An array comes back as it is; in a nest, what is no tensor passes through.
copy : {None, True, False, "lazy"}
    None shares when it can; True gives a private, writable array; False shares or raises; "lazy" keeps the values of
    now and copies only when someone writes to the tensor.
dtype : dtype, "numpy", "bits" or mapping, optional
    None keeps it. "numpy" is the smallest native dtype that holds every value, "bits" the memory as unsigned
    integers. In a nest a plain dtype applies to floating and complex leaves; a mapping says more.
casting : {"same_kind", "no", "equiv", "safe", "unsafe", "same_value"}
    As in NumPy; "same_value" checks every value.
order : {"K", "C", "F", "A"}
    Memory order of a copy; "K" keeps a dense tensor's axis order.
out : ndarray or nest of them, optional
    Filled and returned; its dtype wins.
stream : optional
    That a CUDA tensor's values are ordered in: a torch or CuPy stream, an object with ``__cuda_stream__``, or DLPack's
    number; without it, the producer's current one. An error for host memory.
pinned : {"auto", True, False}
    May, must or shall a CUDA tensor's values not arrive in pinned memory?

Returns
-------
numpy.ndarray or nest
    Same shape (packed dtypes unpack along the last axis). Read-only unless ``copy=True`` or `out`.

Raises
------
FerryError
    Naming what was given, why it cannot be converted and what to write instead.

Notes
-----
Host tensors never block. Tensors on devices are waited for: on CUDA for their copies only, once for a whole nest, without
the GIL; elsewhere by torch. :func:`to_numpy_async` does not wait. A view keeps the tensor's storage alive.

Examples
--------
>>> import torch, tensorferry as ferry
>>> ferry.to_numpy({"x": torch.arange(3), "step": 7})
{'x': array([0, 1, 2]), 'step': 7}
>>> ferry.to_numpy(torch.ones(2, dtype=torch.bfloat16), dtype="numpy")
array([1., 1.], dtype=float32)
)doc";

PyRef leaf_to_numpy(PyObject* leaf, const ToNumpyArguments& arguments) {
  if (const FastType* type = fast_type(Py_TYPE(leaf)); type != nullptr && type->is_torch) {
    return torch_leaf(leaf, *type, arguments);
  }
  const Request& request = arguments.request;
  if (!arguments.leaf_only && PyArray_CheckExact(leaf) && request.copy != CopyPolicy::always &&
      request.order == Order::keep) {
    return PyRef::borrow(leaf);
  }
  return {};
}

PyObject* to_numpy(PyObject* /*module*/, PyObject* const* args, Py_ssize_t nargs, PyObject* keyword_names) noexcept {
  return guarded([&]() -> PyObject* {
    ToNumpyArguments arguments;
    PyObject* x = positional_argument("to_numpy", args, nargs);
    if (keyword_names != nullptr) {
      std::array<PyObject**, 7> slots{&arguments.copy, &arguments.dtype,  &arguments.casting, &arguments.order,
                                      &arguments.out,  &arguments.stream, &arguments.pinned};
      keywords.read("to_numpy", args + nargs, keyword_names, slots);
      interpret(arguments);
    }
    if (arguments.is_simple) {
      if (PyRef array = leaf_to_numpy(x, arguments)) return array.release();
      DeviceLeaves on_device;
      if (PyRef array = device_leaf(x, arguments, on_device)) {
        on_device.settle();
        return array.release();
      }
      if (is_container(x) && !arguments.leaf_only) {
        try {
          ArrayLeaves leaves(x, arguments);
          return convert_nest(x, leaves).release();
        } catch (const LeafOnDevice&) {
          return convert_in_python(x, arguments);
        }
      }
    }
    return convert_in_python(x, arguments);
  });
}

}  // namespace ferry::bind
