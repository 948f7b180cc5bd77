#include "bind/view.hpp"

#include <array>
#include <cstddef>

namespace ferry::bind {
namespace {

struct ViewObject {
  PyObject_HEAD PyObject* storage;
  PyObject* origin;
};

PyTypeObject* view_type = nullptr;

// A few dead objects kept for the next views; guarded by the GIL.
constexpr std::size_t spare_capacity = 64;
std::array<ViewObject*, spare_capacity> spares;
std::size_t spare_count = 0;

void deallocate(PyObject* self) {
  auto* view = reinterpret_cast<ViewObject*>(self);
  Py_CLEAR(view->origin);
  Py_CLEAR(view->storage);
  if (spare_count < spare_capacity) {
    spares[spare_count++] = view;
    return;  // the spare keeps its reference to the type
  }
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* get_storage(PyObject* self, void* /*closure*/) {
  return PyRef::borrow(reinterpret_cast<ViewObject*>(self)->storage).release();
}

PyObject* get_tensor(PyObject* self, void* /*closure*/) {
  PyObject* origin = reinterpret_cast<ViewObject*>(self)->origin;
  if (!PyWeakref_Check(origin)) return PyRef::borrow(origin).release();
  return PyObject_CallNoArgs(origin);
}

std::array<PyGetSetDef, 3> properties{{
    {"storage", get_storage, nullptr, "The torch storage whose memory is shared.", nullptr},
    {"tensor", get_tensor, nullptr, "The tensor the view was made from, or None once it is gone.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
}};

std::array<PyType_Slot, 4> slots{{
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_getset, properties.data()},
    {Py_tp_doc, const_cast<char*>("The base of a read-only array that shares a torch tensor's memory.")},
    {0, nullptr},
}};

PyType_Spec spec{"tensorferry._core.ReadOnlyView", sizeof(ViewObject), 0,
                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};

}  // namespace

PyRef make_view(PyRef storage, PyRef origin) {
  ViewObject* view = nullptr;
  if (spare_count > 0) {
    view = spares[--spare_count];
    Py_SET_REFCNT(reinterpret_cast<PyObject*>(view), 1);
  } else {
    view = PyObject_New(ViewObject, view_type);
    if (view == nullptr) throw PythonErrorSet{};
  }
  view->storage = storage.release();
  view->origin = origin.release();
  return PyRef::steal(reinterpret_cast<PyObject*>(view));
}

bool is_view(PyObject* object) noexcept { return Py_IS_TYPE(object, view_type); }

bool add_view_type(PyObject* module) {
  view_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return view_type != nullptr && PyModule_AddType(module, view_type) == 0;
}

}  // namespace ferry::bind
